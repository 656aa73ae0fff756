import Networking
import Synchronization
import Testing
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Client credentials and their rejection.
@Suite struct CredentialsTests {
    private func request(_ headers: HTTPHeaders) -> HTTPRequestHead { HTTPRequestHead(target: "/", headers: headers) }

    @Test(
        "a bearer token is read from Authorization or from a subprotocol",
        arguments: [
            (["Authorization": "Bearer abc"], "abc"), (["authorization": "bEARER  abc"], "abc"),
            (["Authorization": "Basic abc"], nil), (["Authorization": "Bearer"], nil),
            (["Authorization": "Bearer a b"], nil),
            (["Authorization": ""], nil), (["Sec-WebSocket-Protocol": "trebuchet.v3, bearer.xyz"], "xyz"),
            (["Sec-WebSocket-Protocol": "trebuchet.v3"], nil), (["Sec-WebSocket-Protocol": "bearer."], ""), ([:], nil),
            // The header field has precedence.
            (["Authorization": "Basic abc", "Sec-WebSocket-Protocol": "bearer.xyz"], nil),
        ] as [(HTTPHeaders, String?)])
    func bearer(headers: HTTPHeaders, token: String?) { #expect(request(headers).bearerToken == token) }

    @Test(
        "a cookie is found by its whole name",
        arguments: [
            ("a=1", "1"), ("b=2; a=1", "1"), ("aa=2; a=1", "1"), ("b=a=1", nil), ("a", nil), ("A=1", nil), ("a=", ""),
            ("a=1; a=2", "1"), ("a=x=y", "x=y"), ("", nil), (";a=1", "1"), ("b=2;  a=1", "1"),
        ] as [(String, String?)])
    func cookie(field: String, value: String?) {
        #expect(request(["Cookie": field]).cookie("a") == value)
        #expect(request(["Cookie": "z=0", "cookie": field]).cookie("a") == value)
    }

    @Test("an API key identifies its principal; a missing and a wrong key have different errors")
    func keys() async throws {
        let authenticate = AccessPolicy.apiKeys(["k1": Principal(id: "ada"), "k2": Principal(id: "bob")])
        #expect(try await authenticate(request(["X-API-Key": "k1"]))?.id == "ada")
        #expect(try await authenticate(request(["Authorization": "Bearer k2"]))?.id == "bob")
        #expect(try await authenticate(request(["X-API-Key": "k2", "Authorization": "Bearer k1"]))?.id == "bob")
        await #expect(throws: AccessDenied.unauthenticated("an API key is required")) {
            try await authenticate(request([:]))
        }
        for key in ["", "k", "k11", "K1", "k3"] {
            await #expect(throws: AccessDenied.unauthenticated("unknown API key")) {
                try await authenticate(request(["X-API-Key": key]))
            }
        }
    }

    @Test(
        "an error of authenticate has its HTTP status, and only its public text reaches the client",
        arguments: [
            (AccessDenied.unauthenticated("who?"), 401, "who?"), (AccessDenied.forbidden("no"), 403, "no"),
            (TrebuchetError(.unauthenticated, "who?"), 401, "who?"), (TrebuchetError(.unauthorized, "no"), 403, "no"),
            (TrebuchetError(.rateLimited, "later"), 503, "later"), (TrebuchetError(.unavailable, "down"), 503, "down"),
            (
                TrebuchetError(.internal, "a secret"), 503,
                "authentication is temporarily unavailable; see the server log"
            ),
            (CancellationError(), 503, "authentication is temporarily unavailable; see the server log"),
        ] as [(any Error, Int, String)])
    func refusals(error: any Error, status: Int, reason: String) {
        let lines = Mutex<[String]>([])
        let log = RejectionLog { line in lines.withLock { $0.append(line) } }
        let refusal = AccessPolicy.refusal(error, log)
        #expect(refusal.response.status == status)
        #expect(refusal.reason == reason)
        #expect(String(decoding: refusal.response.body, as: UTF8.self).contains(reason))
        #expect(refusal.response.headers["WWW-Authenticate"] == (status == 401 ? "Bearer" : nil))
        #expect(refusal.response.headers["Retry-After"] == nil)
        #expect(lines.withLock { $0.count } == (reason.hasPrefix("authentication is") ? 1 : 0))
    }

    @Test(
        "a temporary rejection has Retry-After in seconds, rounded up",
        arguments: [
            (Duration.milliseconds(1), "1"), (.seconds(1), "1"), (.milliseconds(1_001), "2"), (.zero, "0"),
            (.seconds(-3), "0"),
            (.seconds(90), "90"),
        ])
    func retryAfter(time: Duration, seconds: String) {
        let log = RejectionLog { _ in }
        for code in [TrebuchetError.Code.rateLimited, .unavailable] {
            let refusal = AccessPolicy.refusal(TrebuchetError(code, "later", retryAfter: time), log)
            #expect(refusal.response.headers["Retry-After"] == seconds)
        }
    }

    @Test(
        "base64url has no padding, and left-over bits are zero",
        arguments: [
            ("", []), ("AA", [0]), ("AAA", [0, 0]), ("AAAA", [0, 0, 0]), ("-_-_", [251, 255, 191]),
            ("Zm9vYg", [102, 111, 111, 98]),
            ("gA", [128]), ("A", nil), ("AAAAA", nil), ("AB", nil), ("AAB", nil), ("AA=", nil), ("AA==", nil),
            ("+/+/", nil),
            ("A A", nil), ("@A", nil), ("[A", nil), ("`A", nil), ("{A", nil), ("/A", nil), (":A", nil),
        ] as [(String, [UInt8]?)])
    func base64URL(text: String, bytes: [UInt8]?) {
        #expect(Base64URL.decode(text[...]) == bytes)
        if let bytes { #expect(Base64URL.encode(bytes) == text) }
    }

    @Test("digests match SHA-256, and are equal when all bytes are")
    func digests() {
        let hex = { (bytes: [UInt8]) in bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
        #expect(
            hex(Digest.sha256(Array("abc".utf8))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        // RFC 4231 §4.3
        #expect(
            hex(Digest.hmacSHA256(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        #expect(Digest.areEqual([1, 2], [1, 2]) && Digest.areEqual([], []))
        #expect(!Digest.areEqual([1, 2], [1, 3]) && !Digest.areEqual([1, 2], [1]) && !Digest.areEqual([1], [1, 2]))
    }

    // MARK: Origins

    @Test(
        "an origin is a scheme, a host and an optional port, in lower case and without the default port",
        arguments: [
            ("https://App.Example", "https://app.example", 443), ("http://a:80", "http://a", 80),
            ("https://a:80", "https://a:80", 80),
            ("http://a:443", "http://a:443", 443), ("app+x.1-y://a:7", "app+x.1-y://a:7", 7),
            ("app://a", "app://a", nil),
            ("http://[::1]:8080", "http://[::1]:8080", 8_080), ("http://a:65535", "http://a:65535", 65_535),
            ("http://a_b-c.d:1", "http://a_b-c.d:1", 1), ("http://[A:F:0:9]", "http://[a:f:0:9]", 80),
            ("z://a", "z://a", nil),
        ] as [(String, String, Int?)])
    func origins(text: String, description: String, port: Int?) throws {
        let origin = try #require(WebOrigin(text))
        #expect(origin.description == description)
        #expect(origin.port == port)
        #expect(WebOrigin(description) == origin)
    }

    @Test(
        "other texts are not origins",
        arguments: [
            "", "null", "a", "://a", "1http://a", "+http://a", "http:/a", "http:a", "http//a", "http://", "http://a/",
            "http://a/b",
            "http://u@a", "http://a:", "http://a:0", "http://a:65536", "http://a:123456", "http://a:x", "http://a:1:2",
            "http://:1",
            "http://[]", "http://[::1", "http://[::g]", "http://[::1]x", "http://[::1]:", "http://a b", "http://\u{e9}",
            "ht_tp://a",
            "http://a?x", "http://a`", "http://a{", "http://a^", "http://a:/", "http://[`]",
        ])
    func noOrigins(text: String) { #expect(WebOrigin(text) == nil) }

    @Test(
        "pages on the host and port of a request are same-origin, with either scheme",
        arguments: [
            ("http://a", "a", true), ("https://a", "a", true), ("http://a:80", "a:80", true),
            ("https://a", "a:443", true),
            ("http://a", "a:443", false), ("https://a", "a:80", false), ("http://a:8080", "a", false),
            ("http://a:8080", "a:8080", true),
            ("http://a", "b", false), ("app://a", "a", false), ("app://a:80", "a", false), ("http://a:443", "a", true),
        ])
    func own(origin: String, host: String, isOwn: Bool) throws {
        #expect(try #require(WebOrigin(origin)).isOwn(of: #require(HostAndPort(host))) == isOwn)
    }

    @Test(
        "loopback names are distinguished from similar names",
        arguments: [
            ("localhost", true), ("LOCALHOST:80", true), ("x.localhost", true), (".localhost", false),
            ("localhost.example", false),
            ("xlocalhost", false), ("127.0.0.1", true), ("127.255.255.255", true), ("127.256.0.1", false),
            ("128.0.0.1", false),
            ("127.0.0", false), ("127.0.0.0.1", false), ("127.0.0.x", false), ("127..0.1", false),
            ("127.0.0.0001", false),
            ("[::1]", true), ("[::2]", false), ("[0:0:0:0:0:0:0:1]", true), ("1127.0.0.1", false),
            ("[::ffff:127.0.0.1]", true), ("[::ffff:192.0.2.1]", false), ("[::ffff]", false),
        ])
    func loopback(host: String, isLoopback: Bool) throws {
        #expect(try #require(HostAndPort(host)).isLoopback == isLoopback)
    }

    // MARK: Connection names

    @Test("a session name of this server is accepted; a foreign one is not")
    func sessionNames() {
        let names = CallSessionRegistry(reactors: 4)
        let first = names.next(onReactor: 2)
        let second = names.next(onReactor: 3)
        #expect(names.reactor(of: first) == 2 && names.reactor(of: second) == 3)
        #expect(second.number > first.number && first.secret != second.secret)
        for name in [first, second] {
            let text = names.text(name)
            #expect(text.utf8.count <= 41)
            #expect(
                names.name(text) == name && names.name(text, own: first) == name
                    && names.name(text, own: second) == name)
            #expect(HandshakeField.server(ofSession: text) == names.instance)
            let parts = text.split(separator: ".").map(String.init)
            for made in [
                "", "a", parts[0], parts[0] + "." + parts[1], text + ".", text + ".1", "." + text,
                parts[1] + "." + parts[2],
                [parts[0] + "1", parts[1], parts[2]].joined(separator: "."),
                [parts[0], parts[2], parts[1]].joined(separator: "."),
                [parts[0], parts[1], "1"].joined(separator: "."), [parts[0], "!", parts[2]].joined(separator: "."),
            ] {
                #expect(names.name(made) == nil)
            }
        }
        // A number that has not been issued is rejected, whatever the secret.
        #expect(names.name(names.text(CallSessionID(number: 1_000, secret: first.secret))) == nil)
        #expect(CallSessionRegistry(reactors: 4).name(names.text(first)) == nil)
        #expect(HandshakeField.server(ofSession: nil) == 0 && HandshakeField.server(ofSession: "!") == 0)
    }
}
