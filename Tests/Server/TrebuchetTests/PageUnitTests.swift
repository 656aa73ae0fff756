import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient
@testable import WebSockets

/// Components of the page server, without a socket.
@Suite struct PageUnitTests {
    private static func parts(_ path: String) -> [String]? {
        (try? PagePath(path))?.parts.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "a path is decoded once, segment by segment",
        arguments: [
            ("/", []), ("/a", ["a"]), ("/a/", ["a"]), ("/a/b.html", ["a", "b.html"]), ("/a%20b/%C3%BC", ["a b", "ü"]),
            ("/%2541", ["%41"]), ("/a+b", ["a+b"]), ("/a:b;c=d,e", ["a:b;c=d,e"]), ("/%61", ["a"]), ("/...", nil),
            ("/a...b", ["a...b"]),
        ] as [(String, [String]?)])
    func paths(_ path: String, _ parts: [String]?) throws {
        #expect(Self.parts(path) == parts)
        if parts != nil { #expect(try PagePath(path).isFolder == path.hasSuffix("/")) }
    }

    @Test(
        "a path that leaves the root or is ambiguous finds no page",
        arguments: [
            ("/..", .invalidPart), ("/../x", .invalidPart), ("/a/../b", .invalidPart), ("/%2e%2e/x", .invalidPart),
            ("/.%2E/x", .invalidPart),
            ("/a/./b", .invalidPart), ("//a", .invalidPart), ("/a//b", .invalidPart), ("/a//", .invalidPart),
            ("//", .invalidPart),
            ("/a%2fb", .invalidPart), ("/a%2Fb", .invalidPart), ("/a%5cb", .invalidPart), ("/a\\b", .invalidPart),
            ("/a%00", .invalidPart),
            ("/a%0d%0ab", .invalidPart), ("/%7f", .invalidPart), ("*", .invalidPart), ("a", .invalidPart),
            ("", .invalidPart),
            ("/.git", .hidden), ("/a/.env", .hidden), ("/%2Egit/config", .hidden),
            ("/%", .malformed), ("/%4", .malformed), ("/%zz", .malformed), ("/a%4g", .malformed), ("/%%41", .malformed),
        ] as [(String, PagePath.InvalidPath)])
    func refused(_ path: String, _ refusal: PagePath.InvalidPath) {
        #expect(throws: refusal) { try PagePath(path) }
        if refusal == .hidden { #expect((try? PagePath(path, showsDotFiles: true)) != nil) }
    }

    @Test("file name extensions select types; texts are UTF-8")
    func types() {
        let wanted = [
            "index.html": "text/html; charset=utf-8", "a.js": "text/javascript; charset=utf-8",
            "a.mjs": "text/javascript; charset=utf-8", "a.css": "text/css; charset=utf-8",
            "a.json": "application/json; charset=utf-8", "a.js.map": "application/json; charset=utf-8",
            "a.svg": "image/svg+xml; charset=utf-8", "a.png": "image/png", "A.JPG": "image/jpeg",
            "a.jpeg": "image/jpeg",
            "a.webp": "image/webp", "favicon.ico": "image/x-icon", "a.woff2": "font/woff2",
            "a.wasm": "application/wasm",
            "a.txt": "text/plain; charset=utf-8", "a": ContentType.unknown, "a.": ContentType.unknown,
            "html": ContentType.unknown, "a.html.bak": ContentType.unknown,
        ]
        for (name, type) in wanted { #expect(ContentType.of(name.utf8) == type, "\(name)") }
    }

    @Test("dates have the HTTP format, for each day of several centuries")
    func dates() {
        #expect(HTTPDate.text(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.text(0) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(HTTPDate.text(-5) == "Thu, 01 Jan 1970 00:00:00 GMT")
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        for day in stride(from: 0, to: 365 * 450, by: 7) {
            let seconds = day * 86_400 + day % 86_400
            #expect(HTTPDate.text(seconds) == formatter.string(from: Date(timeIntervalSince1970: Double(seconds))))
        }
    }

    @Test(
        "If-None-Match accepts a list of versions, weak or not, or any",
        arguments: [
            ([], false), (["\"a\""], true), (["W/\"a\""], true), (["\"b\""], false), (["\"b\", W/\"a\""], true),
            (["\"b\"", "\t\"a\" "], true), (["*"], true), (["a"], false), (["\"A\""], false), (["\"a"], false),
            ([""], false),
        ])
    func tags(_ lines: [String], _ isKnown: Bool) {
        var headers: HTTPHeaders = [:]
        for line in lines { headers.add("If-None-Match", line) }
        #expect(EntityTag.isKnown("W/\"a\"", to: headers) == isKnown)
        #expect(EntityTag.isKnown("\"a\"", to: headers) == isKnown)
    }

    @Test(
        "the schema is served to loopback only, and not through a proxy",
        arguments: [
            ("127.0.0.1", ["Host": "localhost:8080"], false, true), ("127.0.0.1", ["Host": "127.0.0.1"], false, true),
            ("::1", ["Host": "[::1]:8080"], false, true), ("127.0.0.1", [:], false, false),
            ("127.0.0.1", ["Host": "app.example"], false, false), ("192.0.2.1", ["Host": "localhost"], false, false),
            ("127.0.0.1", ["Host": "localhost"], true, false),
            ("127.0.0.1", ["Host": "localhost", "X-Forwarded-For": "127.0.0.1"], false, false),
            ("127.0.0.1", ["Host": "localhost", "forwarded": "for=192.0.2.1"], false, false),
            ("127.0.0.1", ["Host": "localhost", "Via": "1.1 proxy"], false, false),
            ("127.0.0.1", ["Host": "localhost", "X-Real-IP": "192.0.2.1"], false, false),
        ] as [(String, HTTPHeaders, Bool, Bool)])
    func localClients(_ address: String, _ headers: HTTPHeaders, _ isFromProxy: Bool, _ isServed: Bool) {
        let request = PlainRequest(
            head: HTTPRequestHead(target: "/schema.json", headers: headers),
            remoteAddress: SocketAddress(literal: address, port: 4711), isFromProxy: isFromProxy)
        #expect(ServerSchema.isOfLocalClient(request) == isServed)
    }

    @Test("a host has a quota of open files, loopback has all of them, and all are released")
    func openFiles() {
        var limits = PageLimits()
        limits.openFiles = 3
        limits.openFilesPerHost = 2
        let files = OpenFiles(limits)
        let host = SocketAddress(literal: "192.0.2.1", port: 1).flatMap { AddressKey($0) }
        let loopback = SocketAddress(literal: "127.0.0.1", port: 1).flatMap { AddressKey($0) }
        var places = [files.reserveFile(for: host), files.reserveFile(for: host)]
        #expect(places.allSatisfy { $0 != nil })
        #expect(files.reserveFile(for: host) == nil)
        places.append(files.reserveFile(for: loopback))
        #expect(places.last! != nil)
        #expect(files.reserveFile(for: loopback) == nil && files.count == 3)
        places = []
        #expect(files.count == 0)
        places = [files.reserveFile(for: loopback), files.reserveFile(for: loopback), files.reserveFile(for: loopback)]
        #expect(places.allSatisfy { $0 != nil })
    }

    @Test("at a limit a new file replaces the slowest reader, of the host or of all, unless all are new")
    func slowestReader() {
        var limits = PageLimits()
        limits.openFiles = 4
        limits.openFilesPerHost = 2
        let files = OpenFiles(limits)
        func host(_ number: Int) -> AddressKey? {
            SocketAddress(literal: "192.0.2.\(number)", port: 1).flatMap { AddressKey($0) }
        }
        let second: UInt64 = 1_000_000_000
        let cancelled = Mutex<[Int]>([])
        var places: [OpenFiles.FileReservation?] = []
        /// Reserves a file and records its cancellation.
        func reserve(_ number: Int, at now: UInt64) -> OpenFiles.FileReservation? {
            let place = files.reserveFile(for: host(number), at: now * second)
            let index = places.count
            place?.transfer.setCancellation { cancelled.withLock { $0.append(index) } }
            places.append(place)
            return place
        }
        for number in [1, 1, 2, 2] { #expect(reserve(number, at: 10) != nil) }
        for (index, bytes) in [5_000, 4_000, 3_000, 50].enumerated() {
            places[index]?.transfer.recordProgress(UInt64(bytes))
        }
        #expect(reserve(1, at: 11) == nil && cancelled.withLock { $0 } == [], "the rates are not known yet")
        #expect(reserve(1, at: 13) != nil && cancelled.withLock { $0 } == [1], "the slowest of the host")
        #expect(reserve(3, at: 13) != nil && cancelled.withLock { $0 } == [1, 3], "the slowest of all")
        #expect(files.count == 6, "replaced files count until they are closed")
        places[1] = nil
        places[3] = nil
        #expect(files.count == 4)
        places = []
        // All are new: a host with fewer files than another one takes the place of its slowest.
        cancelled.withLock { $0 = [] }
        for number in [1, 1, 2, 3] { #expect(reserve(number, at: 20) != nil) }
        places[0]?.transfer.recordProgress(10)
        #expect(reserve(4, at: 20) != nil && cancelled.withLock { $0 } == [1])
        #expect(
            reserve(5, at: 20) == nil && cancelled.withLock { $0 } == [1], "no host has more files than it would have")
        places = []
        #expect(files.count == 0)
    }

    @Test("the client library has the built modules of Web, except those for bundlers and the inspector")
    func library() throws {
        let root = packageRoot
        let built = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: "Web/dist").path)
        let modules = Set(built.filter { $0.hasSuffix(".js") }).subtracting(["react.js", "inspector.js"])
        #expect(Set(WebFiles.client.keys) == modules && PageSource.clientLibrary.single.count == modules.count)
        for (name, bytes) in WebFiles.client {
            #expect(try Data(contentsOf: root.appending(path: "Web/dist/\(name)")) == Data(bytes), "\(name)")
        }
    }

    @Test("the start page's policy allows its own script and style, and no other")
    func policy() throws {
        guard case .page(let page, let place) = PageSource.startPage.kind else {
            Issue.record("no page")
            return
        }
        #expect(place == .root)
        let policy = try #require(page.headers["Content-Security-Policy"])
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self' 'sha256-"))
        #expect(!policy.contains("unsafe") && !policy.contains("style-src 'none'"))
        let html = "<style>a</style><script type=\"module\">b\n</script>"
        // From `printf 'b\n'
        // openssl dgst -sha256 -binary
        // base64`.
        #expect(
            ContentSecurityPolicy.ofPage(Array(html.utf8)).contains(
                "script-src 'self' 'sha256-AmOCmYm2/ZVPcrqvL8ZLwuLwHWktTecphuqAj26ZgT8='; "))
    }
}
