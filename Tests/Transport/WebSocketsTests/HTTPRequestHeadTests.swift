import Testing

import Transports
@testable import WebSockets

@Suite("HTTP request heads (RFC 9112 §2–6)")
struct HTTPRequestHeadTests {
    /// The parsed request, or the status of its rejection; nil when it is incomplete.
    private func parse(_ text: String, bytewise: Bool = false, limits: WebSocketLimits = WebSocketLimits()) -> Result<
        HTTPRequestHead, HTTPRejection
    >? {
        let bytes = Array(text.utf8)
        var scanner = HTTPHeadScanner(limits: limits)
        for count in bytewise ? Array(1...bytes.count) : [bytes.count] {
            let result = bytes[..<count].withUnsafeBytes { scanner.scan($0) }
            switch result {
            case .incomplete: continue
            case .rejection(let rejection): return .failure(rejection)
            case .complete(let length):
                return Array(bytes[..<length]).withUnsafeBytes { head in
                    Result { () throws(HTTPRejection) in try HTTPRequestHead.parse(head) }
                }
            }
        }
        return nil
    }

    private func status(_ text: String, limits: WebSocketLimits = WebSocketLimits()) -> Int? {
        guard case .failure(let whole)? = parse(text, limits: limits) else { return nil }
        guard case .failure(let slow)? = parse(text, bytewise: true, limits: limits), slow == whole else { return -1 }
        return whole.status
    }

    @Test("a request is parsed; names match in any case, and lists join across lines")
    func good() throws {
        let text =
            "GET /chat?room=1&x=%20 HTTP/1.1\r\nhost: example.org:8080\r\nX-Empty:\r\nVia: a , b\r\nVIA:\t c,, \r\n\r\nrest"
        for bytewise in [false, true] {
            let head = try #require(try parse(text, bytewise: bytewise)?.get())
            #expect(head.method == "GET")
            #expect(head.target == "/chat?room=1&x=%20")
            #expect(head.path == "/chat")
            #expect(head.query == "room=1&x=%20")
            #expect(head.headers["HOST"] == "example.org:8080")
            #expect(head.headers["x-empty"] == "")
            #expect(head.headers.list("via") == ["a", "b", "c"])
            #expect(head.headers["missing"] == nil)
        }
    }

    @Test(
        "a target may contain the host (RFC 9112 §3.2.2)",
        arguments: [
            ("http://example.org/a?b", "/a?b"), ("ws://example.org", "/"), ("https://h?x", "/?x"), ("/", "/"),
            ("*", "*"),
        ])
    func targets(_ written: String, _ read: String) throws {
        let head = try #require(try parse("GET \(written) HTTP/1.1\r\nHost: h\r\n\r\n")?.get())
        #expect(head.target == read)
    }

    static let bad: [(Int, String)] = [
        (400, "GET / HTTP/1.1\nHost: h\n\n"), (400, "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: h\r\nX: a\u{0}b\r\n\r\n"), (400, "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n"), (400, "GET / HTTP/1.1\r\n Host: h\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost : h\r\n\r\n"), (400, "GET / HTTP/1.1\r\nHost\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\n: x\r\nHost: h\r\n\r\n"), (400, "GET / HTTP/1.1\r\nHost: h\r\nX(y): 1\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\n\r\n"), (400, "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), (400, "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n"),
        (400, "GET /\r\n\r\n"), (400, "GET  / HTTP/1.1\r\nHost: h\r\n\r\n"),
        (400, "GET / HTTP/1.1 \r\nHost: h\r\n\r\n"),
        (400, "G@T / HTTP/1.1\r\nHost: h\r\n\r\n"), (400, " GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
        (400, "GET x HTTP/1.1\r\nHost: h\r\n\r\n"), (400, "GET /é HTTP/1.1\r\nHost: h\r\n\r\n"),
        (400, "GET /#f HTTP/1.1\r\nHost: h\r\n\r\n"), (400, "GET / http/1.1\r\nHost: h\r\n\r\n"),
        (400, "GET / HTTP/11\r\nHost: h\r\n\r\n"), (505, "GET / HTTP/2.0\r\nHost: h\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 2\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0, \r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n"),
        (413, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n"),
        (413, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n"),
        (413, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"),
        (413, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\n"),
        (
            400,
            "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"
        ),
        (400, "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: WebSocket\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ]

    @Test("each defect has its status, whether the bytes arrive at once or one by one", arguments: bad)
    func defects(_ wanted: Int, _ text: String) { #expect(status(text) == wanted) }

    @Test(
        "an empty body is no body, with an upgrade and without",
        arguments: [
            "Content-Length: 0", "Content-Length: 00", "Content-Length: 0\r\nContent-Length: 0", "Content-Length: 0, 0",
        ])
    func emptyBody(_ field: String) {
        #expect(status("GET / HTTP/1.1\r\nHost: h\r\n\(field)\r\n\r\n") == nil)
        #expect(status("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\(field)\r\n\r\n") == nil)
    }

    @Test(
        "where bodies are accepted their framing is read, but an upgrade has none",
        arguments: [
            ("", .success(.empty)), ("Content-Length: 7", .success(.length(7))),
            ("Content-Length: 7\r\nContent-Length: 7", .success(.length(7))),
            ("Content-Length: 99999999999999999999", .success(.length(.max))),
            ("Transfer-Encoding: chunked", .success(.chunked)), ("transfer-encoding: Chunked", .success(.chunked)),
            ("Transfer-Encoding: gzip, chunked", .failure(501)), ("Transfer-Encoding: chunked, chunked", .failure(501)),
            ("Transfer-Encoding:", .failure(501)), ("Transfer-Encoding: chunked\r\nContent-Length: 7", .failure(400)),
            ("Content-Length: 7\r\nUpgrade: websocket", .failure(400)),
            ("Transfer-Encoding: chunked\r\nUpgrade: websocket", .failure(400)),
        ] as [(String, Framing)])
    private func framing(fields: String, wanted: Framing) {
        let text = "POST / HTTP/1.1\r\nHost: h\r\n\(fields.isEmpty ? "" : fields + "\r\n")\r\n"
        let head = Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(HTTPRejection) in try HTTPRequestHead.parse(bytes, allowsBody: true) }
        }
        switch (head, wanted) {
        case (.success(let head), .success(let framing)): #expect(head.body == framing)
        case (.failure(let rejection), .failure(let status)): #expect(rejection.status == status)
        default: Issue.record("\(head)")
        }
    }

    private enum Framing: Sendable {
        case success(HTTPBodyFraming)
        case failure(Int)
    }

    @Test("HTTP/1.0 has no transfer codings")
    func oldVersion() {
        let text = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"
        let head = Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(HTTPRejection) in try HTTPRequestHead.parse(bytes, allowsBody: true) }
        }
        guard case .failure(let rejection) = head else {
            Issue.record("accepted")
            return
        }
        #expect(rejection.status == 400)
    }

    @Test("a request line, a header section and a field count over the limit are rejected, those at the limit are not")
    func limits() {
        var limits = WebSocketLimits()
        limits.requestLineBytes = 20
        limits.headerBytes = 100
        limits.headerCount = 3
        func request(path: Int = 1, fields: Int = 1, padding: Int = 0) -> String {
            let lines = (1..<fields).map { "A: \($0)\r\n" }.joined()
            let pad = padding > 0 ? "P: \(String(repeating: "x", count: padding))\r\n" : ""
            return "GET /\(String(repeating: "p", count: path - 1)) HTTP/1.1\r\nHost: h\r\n\(lines)\(pad)\r\n"
        }
        #expect(status(request(path: 7), limits: limits) == nil)
        #expect(status(request(path: 8), limits: limits) == 414)
        #expect(status(request(fields: 3), limits: limits) == nil)
        #expect(status(request(fields: 4), limits: limits) == 431)
        let room = 100 - request().utf8.count - "P: \r\n".utf8.count
        #expect(status(request(padding: room), limits: limits) == nil)
        #expect(status(request(padding: room + 1), limits: limits) == 431)
        // Without an end of line the limit applies as well.
        #expect(status(String(repeating: "G", count: 50), limits: limits) == 414)
    }

    @Test("an incomplete header section is buffered")
    func incomplete() {
        for text in ["G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: h\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r"] {
            #expect(parse(text) == nil)
        }
    }

    @Test(
        "field names are tokens from their first letter on, and values have no control characters",
        arguments: [
            ("!x: y", nil), ("#$%&'*+-.^_`|~09azAZ: y", nil), (" x: y", 400), ("\tx: y", 400), ("x : y", 400),
            (": y", 400), ("x", 400),
            ("x(: y", 400), ("x\u{7f}: y", 400), ("x\u{e9}: y", 400), ("x: \ty\t z", nil), ("x: \u{1f}", 400),
            ("x: \u{7f}", 400),
            ("x: \u{80}", nil), ("x: ~", nil), ("x:y", nil), ("x: y: z", nil), ("x\"y: z", 400), ("x{y: z", 400),
            ("x/y: z", 400),
            ("x:\u{0}", 400),
        ] as [(String, Int?)])
    func fieldNames(line: String, refused: Int?) {
        #expect(status("GET / HTTP/1.1\r\nHost: h\r\n\(line)\r\n\r\n") == refused)
    }
}
