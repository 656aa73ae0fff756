import Networking
import Testing

import Transports
@testable import WebSockets

@Suite("Handshake (RFC 6455 §4)")
struct HandshakeTests {
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="

    private func request(
        _ method: String = "GET", version: Int = 1, changing: [(String, String?)] = []
    ) -> HTTPRequestHead {
        var headers: [(String, String)] = [
            ("Host", "h"), ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", Self.key),
            ("Sec-WebSocket-Version", "13"),
        ]
        for (name, value) in changing {
            headers.removeAll { $0.0 == name }
            if let value { headers.append((name, value)) }
        }
        var fields = HTTPHeaders()
        for (name, value) in headers { fields.add(name, value) }
        return HTTPRequestHead(method: method, target: "/", headers: fields, minorVersion: version)
    }

    private func status(_ request: HTTPRequestHead) -> Int? {
        do throws(HTTPRejection) {
            _ = try ServerHandshake.negotiate(request, subprotocols: [])
            return nil
        } catch {
            return error.status
        }
    }

    @Test("the accept key is the RFC's (§1.3)")
    func acceptKey() throws {
        #expect(HandshakeKey.accept(for: Self.key) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        let response = try ServerHandshake.negotiate(request(), subprotocols: ["chat"]).response
        #expect(
            String(decoding: response.encoded(), as: UTF8.self)
                == "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
    }

    @Test(
        "token lists match in any case and at any position",
        arguments: [
            ("Upgrade", "WebSocket"), ("Upgrade", "h2c, WEBSOCKET"), ("Connection", "keep-alive, Upgrade"),
            ("Connection", "UPGRADE"),
        ])
    func tokens(_ name: String, _ value: String) { #expect(status(request(changing: [(name, value)])) == nil) }

    @Test(
        "each defect has its status",
        arguments: [
            (400, "Connection", nil), (400, "Connection", "keep-alive"), (400, "Sec-WebSocket-Key", nil),
            (400, "Sec-WebSocket-Key", "short"), (400, "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZR=="),
            (400, "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQAA"),
            (400, "Sec-WebSocket-Key", "dGhl*HNhbXBsZSBub25jZQ=="),
            (400, "Sec-WebSocket-Version", nil), (426, "Sec-WebSocket-Version", "8"),
            (426, "Sec-WebSocket-Version", "13, 8"),
            (426, "Upgrade", nil), (426, "Upgrade", "h2c"), (426, "Upgrade", "websockets"),
            (400, "Sec-WebSocket-Protocol", "a b"),
        ] as [(Int, String, String?)])
    func defects(_ wanted: Int, _ name: String, _ value: String?) {
        #expect(status(request(changing: [(name, value)])) == wanted)
    }

    @Test("other methods get 405 with Allow, HTTP/1.0 gets 400, and 426 names version 13")
    func otherDefects() throws {
        #expect(status(request("POST")) == 405)
        #expect(status(request(version: 0)) == 400)
        do throws(HTTPRejection) {
            _ = try ServerHandshake.negotiate(request("PUT"), subprotocols: [])
        } catch {
            #expect(error.response.headers["Allow"] == "GET")
        }
        #expect(ServerHandshake.upgradeRequired.response.headers["Sec-WebSocket-Version"] == "13")
    }

    @Test(
        "the server's order of preference selects among the offers",
        arguments: [
            ("a, b, c", ["c", "b"], "c"), ("a", ["b", "a"], "a"), ("a", ["b"], nil), ("A", ["a"], nil),
            (nil, ["a"], nil),
        ] as [(String?, [String], String?)])
    func subprotocols(_ offered: String?, _ ours: [String], _ chosen: String?) throws {
        let agreement = try ServerHandshake.negotiate(
            request(changing: [("Sec-WebSocket-Protocol", offered)]), subprotocols: ours)
        #expect(agreement.subprotocol == chosen)
        #expect(agreement.response.headers["Sec-WebSocket-Protocol"] == chosen)
    }

    // MARK: The client

    private func client(subprotocols: [String] = ["v2", "v1"], headers: HTTPHeaders = [:]) throws -> ClientHandshake {
        ClientHandshake(
            url: try WebSocketURL("ws://example.org:81/chat"), subprotocols: subprotocols, headers: headers,
            key: Self.key)
    }

    @Test("the server accepts the client's request")
    func requestBytes() throws {
        let bytes = try client(headers: ["Authorization": "Bearer x"]).request()
        let head = try bytes.withUnsafeBytes { try HTTPRequestHead.parse($0) }
        #expect(head.target == "/chat")
        #expect(head.headers["Host"] == "example.org:81")
        #expect(head.headers["Authorization"] == "Bearer x")
        #expect(try ServerHandshake.negotiate(head, subprotocols: ["v1"]).subprotocol == "v1")
        #expect(HandshakeKey.isValid(HandshakeKey.random()))
        #expect(HandshakeKey.random() != HandshakeKey.random())
    }

    @Test("headers that would corrupt the request are rejected", arguments: ["a\r\nX: y", "a\nb", "\u{0}"])
    func injection(_ value: String) {
        #expect(throws: TransportError.self) { try client(headers: ["X": value]).request() }
        #expect(throws: TransportError.self) { try client(headers: [value: "x"]).request() }
        #expect(throws: TransportError.self) { try client(subprotocols: [value]).request() }
        let response = HTTPResponse(status: 200, headers: ["X": value])
        #expect(!String(decoding: response.encoded(), as: UTF8.self).contains("X:"))
    }

    @Test(
        "every response except a valid 101 is an error that names the defect",
        arguments: [
            (302, [:], "302"), (200, [:], "200"), (101, ["Upgrade": "h2c"], "did not upgrade"),
            (101, ["Connection": "close"], "did not upgrade"),
            (101, ["Sec-WebSocket-Accept": "wrong"], "Sec-WebSocket-Accept"),
            (101, ["Sec-WebSocket-Protocol": "v3"], "subprotocol"),
            (101, ["Sec-WebSocket-Extensions": "x"], "extensions"),
        ] as [(Int, [String: String], String)])
    func answers(_ status: Int, _ changes: [String: String], _ defect: String) throws {
        var fields = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        ]
        fields.merge(changes) { $1 }
        var headers = HTTPHeaders()
        for (name, value) in fields { headers.add(name, value) }
        let response = HTTPResponseHead(status: status, headers: headers)
        let error = #expect(throws: TransportError.self) { try client().validate(response) }
        #expect(error?.code == .handshake)
        #expect(error?.message.contains(defect) == true)
        #expect((error?.cause as? UnexpectedHTTPStatus)?.status == (status == 101 ? nil : status))
    }

    @Test("a valid 101 provides the chosen subprotocol")
    func goodAnswer() throws {
        let bytes = Array(
            ("HTTP/1.1 101 x\r\nUPGRADE: WebSocket\r\nconnection: upgrade\r\nSec-WebSocket-Protocol: v1\r\n"
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n").utf8)
        let response = try bytes.withUnsafeBytes { try HTTPResponseHead.parse($0) }
        #expect(try client().validate(response).subprotocol == "v1")
    }

    @Test(
        "a TLS alert is distinguished from a response",
        arguments: [
            ([0x15, 3, 1, 0, 2, 2, 70], true), ([0x15, 3], true), ([0x15], false), ([], false), ([0x16, 3, 1], false),
            ([0x15, 4], false), (Array("HTTP/1.1 400".utf8), false),
        ] as [([UInt8], Bool)])
    func alert(_ answer: [UInt8], _ isAlert: Bool) throws {
        let client = try client()
        #expect(answer.withUnsafeBytes { client.isTLS($0) } == isAlert)
    }

    @Test(
        "URLs are parsed according to RFC 6455 §3",
        arguments: [
            ("ws://h", "h", 80, "/", "h"), ("ws://h:81/a?b=c", "h", 81, "/a?b=c", "h:81"),
            ("WS://h?x", "h", 80, "/?x", "h"), ("http://h", "h", 80, "/", "h"), ("HTTPS://h/a", "h", 443, "/a", "h"),
            ("ws://[::1]:9000/", "::1", 9000, "/", "[::1]:9000"), ("ws://[::1]", "::1", 80, "/", "[::1]"),
        ])
    func urls(_ text: String, _ host: String, _ port: Int, _ target: String, _ authority: String) throws {
        let url = try WebSocketURL(text)
        #expect(url.host == host)
        #expect(url.port == port)
        #expect(url.target == target)
        #expect(url.authority == authority)
    }

    @Test(
        "invalid URLs are errors",
        arguments: [
            "ws://u@h", "ws://[::1", "ws://[::1]x", "ws://h/a b", "ws://h\r\n",
        ])
    func badURLs(_ text: String) { #expect(throws: TransportError.self) { try WebSocketURL(text) } }

    @Test("the error for a password in a URL does not contain it")
    func password() {
        let error = #expect(throws: TransportError.self) { try WebSocketURL("wss://ada:se@cret@h/a") }
        #expect(
            error?.message
                == "'…@h/a' is not a WebSocket URL (ws://host:port/path): a user name and a password are not allowed; use a token"
        )
    }
}
