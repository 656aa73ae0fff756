import Networking
import Synchronization
import Testing
import Transports
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A table of the headers that browsers send, and the pages that may use a server.
@Suite struct OriginRuleTests {
    /// A request with these headers to `address`.
    private struct Request: CustomTestStringConvertible {
        var origins: [String]
        var host: String?
        var address = SocketAddress(literal: "192.0.2.1", port: 8080)
        var isUpgrade = true

        init(_ origins: String..., host: String?, at address: String = "192.0.2.1", upgrade: Bool = true) {
            self.origins = origins
            self.host = host
            self.address = SocketAddress(literal: address, port: 8080)
            isUpgrade = upgrade
        }

        var head: HTTPRequestHead {
            var headers = HTTPHeaders()
            if let host { headers.add("Host", host) }
            if isUpgrade { headers.add("Upgrade", "websocket") }
            for origin in origins { headers.add("origin", origin) }
            return HTTPRequestHead(target: "/", headers: headers)
        }

        var testDescription: String { "\(origins) to \(host ?? "no host") at \(address?.host ?? "?")" }
    }

    private func refusal(_ request: Request, _ origins: Set<String>?) throws -> HTTPResponse? {
        try OriginRule(origins).refusal(of: request.head, at: request.address)
    }

    @Test(
        "a page of the same host and port is admitted",
        arguments: [
            Request("http://app.example:8080", host: "app.example:8080"),
            Request("https://app.example:8080", host: "app.example:8080"),
            Request("https://app.example", host: "app.example"),
            Request("http://app.example", host: "app.example"),
            Request("https://app.example", host: "app.example:443"),
            Request("https://app.example:443", host: "app.example"),
            Request("http://app.example:80", host: "app.example:80"),
            Request("HTTPS://App.Example", host: "app.EXAMPLE"),
            Request("http://192.0.2.1:8080", host: "192.0.2.1:8080"),
            Request("http://[2001:db8::1]:8080", host: "[2001:DB8::1]:8080", at: "2001:db8::1"),
            Request("http://localhost:8080", host: "localhost:8080", at: "127.0.0.1"),
            Request("http://app.localhost:8080", host: "app.localhost:8080", at: "127.0.0.1"),
            Request("http://127.0.0.1:8080", host: "127.0.0.1:8080", at: "127.0.0.1"),
            Request("http://127.8.9.1:8080", host: "127.8.9.1:8080", at: "127.8.9.1"),
            Request("http://[::1]:8080", host: "[::1]:8080", at: "::1"),
            Request("http://[::ffff:7f00:1]:8080", host: "[::ffff:7f00:1]:8080", at: "127.0.0.1"),
        ])
    private func own(request: Request) throws { #expect(try refusal(request, nil) == nil) }

    @Test(
        "a page of any other host or port, or with an opaque origin, is rejected",
        arguments: [
            Request("https://app.example.evil.com", host: "app.example"),
            Request("https://evil.com", host: "app.example"),
            Request("https://evilapp.example", host: "app.example"),
            Request("https://app.example", host: "app.example.evil.com"),
            Request("http://localhost:8080", host: "localhost:8081", at: "127.0.0.1"),
            Request("http://localhost:80801", host: "localhost:8080", at: "127.0.0.1"),
            Request("http://localhost", host: "localhost:8080", at: "127.0.0.1"),
            Request("http://localhost:8080", host: "localhost", at: "127.0.0.1"),
            Request("http://localhost:8080", host: "127.0.0.1:8080", at: "127.0.0.1"),
            Request("http://app.example", host: "app.example:443"),
            Request("https://app.example.", host: "app.example"),
            Request("https://app.example", host: "app.example."),
            Request("https://user@app.example", host: "app.example"),
            Request("https://app.example@evil.com", host: "app.example"),
            Request("https://app.example/", host: "app.example"),
            Request("https://app.example/evil.com", host: "app.example"),
            Request("https://app.example:", host: "app.example"),
            Request("https://app.example:0", host: "app.example:0"),
            Request("https://", host: ""),
            Request("app.example", host: "app.example"),
            Request("//app.example", host: "app.example"),
            Request("capacitor://app.example", host: "app.example"),
            Request("null", host: "app.example"),
            Request("null", host: "null"),
            Request("", host: "app.example"),
            Request("https://app.example", host: nil),
            Request("https://app.example", "https://app.example", host: "app.example"),
            Request("https://app.example", "https://evil.com", host: "app.example"),
            Request("http://[2001:db8::2]:8080", host: "[2001:db8::1]:8080", at: "2001:db8::1"),
            Request("http://[::1:8080", host: "[::1:8080", at: "::1"),
            Request("http://\u{212A}.example", host: "k.example"),
        ])
    private func foreign(request: Request) throws {
        let response = try #require(try refusal(request, nil))
        #expect(response.status == 403)
        #expect(!response.body.isEmpty)
    }

    @Test(
        "at a loopback address a name that DNS rebinding could use is rejected, also for pages of that name",
        arguments: [
            "evil.com", "localhost.evil.com", "evillocalhost", ".localhost", "localhost.", "127.0.0.1.evil.com",
            "0.0.0.0", "127.0.0.256", "127.0.1", "[::]", "192.0.2.1", "[::ffff:192.0.2.1]",
        ])
    func rebinding(host: String) throws {
        for address in ["127.0.0.1", "127.5.5.5", "::1"] {
            let request = Request("http://\(host):8080", host: "\(host):8080", at: address)
            #expect(try refusal(request, nil)?.status == 403, "\(address)")
            let plain = Request(host: "\(host):8080", at: address, upgrade: false)
            #expect(try refusal(plain, nil)?.status == 403, "\(address)")
        }
    }

    @Test("a program without an origin is admitted under any host name; so is a plain request without one")
    func programs() throws {
        for address in ["127.0.0.1", "192.0.2.1"] {
            #expect(try refusal(Request(host: "backend:8080", at: address), nil) == nil)
            #expect(try refusal(Request(host: "backend:8080", at: address), ["https://app.example"]) == nil)
            #expect(try refusal(Request(host: nil, at: address, upgrade: false), nil) == nil)
            #expect(try refusal(Request(host: "localhost:8080", at: address, upgrade: false), nil) == nil)
        }
    }

    @Test("with a list the list decides, whatever the host; with * every origin is admitted")
    func listed() throws {
        let list: Set = ["https://App.example:443", "http://localhost:3000", "capacitor://localhost"]
        for origin in ["https://app.example", "HTTP://LOCALHOST:3000", "capacitor://localhost"] {
            #expect(try refusal(Request(origin, host: "api.example", at: "127.0.0.1"), list) == nil, "\(origin)")
        }
        for origin in [
            "https://app.example.evil.com", "http://app.example", "https://app.example:8443", "http://localhost:30000",
            "http://localhost", "null", "https://api.example",
        ] {
            #expect(try refusal(Request(origin, host: "api.example"), list)?.status == 403, "\(origin)")
            #expect(try refusal(Request(origin, host: "api.example"), ["*"]) == nil, "\(origin)")
            #expect(try refusal(Request(origin, host: "api.example"), [])?.status == 403, "\(origin)")
        }
        #expect(try refusal(Request("null", host: "evil.com", at: "127.0.0.1"), AccessPolicy.anyOrigin) == nil)
    }

    @Test("a rejection names the origin and the setting, in a line of plain text whatever was sent")
    func text() throws {
        let own = try #require(
            try refusal(Request("http://localhost:3000", host: "localhost:8080", at: "127.0.0.1"), nil))
        let text = String(decoding: own.body, as: UTF8.self)
        for part in [
            "'http://localhost:3000'", "'localhost:8080'", "AccessPolicy.origins", "--origins http://localhost:3000",
        ] {
            #expect(text.contains(part), "\(text)")
        }
        let file = try #require(try refusal(Request("null", host: "localhost:8080", at: "127.0.0.1"), nil))
        #expect(String(decoding: file.body, as: UTF8.self).contains("--origins '*'"))
        let odd = try #require(try refusal(Request(String(repeating: "é\t", count: 4_000), host: "h"), nil))
        #expect(odd.body.count < 1_000 && odd.body.dropLast().allSatisfy { (0x20...0x7E).contains($0) })
    }

    @Test(
        "an invalid origin is an error at server start, with advice",
        arguments: ["app.example", "https://app.example/", "https://*.example", "null", "", "https://a b", "1://a"])
    func invalid(origin: String) async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), access: AccessPolicy(origins: ["https://a", origin]))
        let error = await #expect(throws: TransportError.self) { try await server.start() }
        #expect(error?.message.contains("'\(origin)'") == true && error?.message.contains("scheme://host") == true)
    }

    @Test("the log names the rejected page, once a second, with the number of further rejections")
    func logged() {
        let lines = Mutex<[String]>([])
        let log = RejectionLog { line in lines.withLock { $0.append(line) } }
        let refusal = HTTPResponse(status: 403, text: "origin 'http://a' is not allowed")
        for now in [5_000_000_000, 5_000_000_001, 5_999_999_999, 6_000_000_000, 6_500_000_000] as [UInt64] {
            log.logRejection(refusal, from: SocketAddress(literal: "192.0.2.1", port: 7), at: now)
        }
        #expect(
            lines.withLock { $0 } == [
                "refused 192.0.2.1:7 with 403: origin 'http://a' is not allowed",
                "refused 192.0.2.1:7 with 403: origin 'http://a' is not allowed (and 2 before it)",
            ])
    }
}
