import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("JSON Web Tokens (RFC 7519)")
struct JSONWebTokenTests {
    private static let secret = Array("a secret of at least 32 bytes, surely".utf8)
    private static let goodClaims = #"{"sub":"ada","exp":1500000100,"roles":["a","b"],"name":"Ada","level":3}"#

    /// A token with this header and these claims, signed with the secret.
    private func token(
        _ claims: String = goodClaims, head: String = #"{"alg":"HS256"}"#, secret: [UInt8] = secret
    ) -> String {
        let signed = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return signed + "." + Base64URL.encode(Digest.hmacSHA256(Array(signed.utf8), key: secret))
    }

    private func verifier(
        _ key: JSONWebTokenKey = .hs256(secret), audience: String? = nil, issuer: String? = nil
    ) throws -> JSONWebTokenVerifier {
        try JSONWebTokenVerifier(key: key, audience: audience, issuer: issuer, leeway: .seconds(30)) { 1_500_000_000 }
    }

    @Test("a token identifies a principal with roles and other claims")
    func principal() throws {
        let principal = try verifier().verify(token())
        #expect(principal == Principal(id: "ada", roles: ["a", "b"], claims: ["name": "Ada", "level": "3"]))
    }

    @Test(
        "claims are checked: times with leeway, audience and issuer on request",
        arguments: [
            (#"{"sub":"a","exp":1499999971}"#, true), (#"{"sub":"a","exp":1499999969}"#, false),
            (#"{"sub":"a"}"#, false), (#"{"exp":1500000100}"#, false), (#"{"sub":"a","exp":"never"}"#, false),
            (#"{"sub":"a","exp":1500000100,"nbf":1500000029}"#, true),
            (#"{"sub":"a","exp":1500000100,"nbf":1500000031}"#, false), ("[]", false), ("{", false),
        ])
    func claims(_ claims: String, isGood: Bool) throws {
        let verifier = try verifier()
        #expect(((try? verifier.verify(token(claims))) != nil) == isGood)
    }

    @Test(
        "audience and issuer",
        arguments: [
            (#""aud":"app","iss":"me""#, true), (#""aud":["x","app"],"iss":"me""#, true),
            (#""aud":"x","iss":"me""#, false),
            (#""aud":"app","iss":"you""#, false), (#""iss":"me""#, false), (#""aud":"app""#, false),
        ])
    func audience(_ claims: String, isGood: Bool) throws {
        let verifier = try verifier(audience: "app", issuer: "me")
        let token = token(#"{"sub":"a","exp":1500000100,"# + claims + "}")
        #expect(((try? verifier.verify(token)) != nil) == isGood)
    }

    @Test("'none', another algorithm, unknown extensions and a wrong secret are rejected")
    func heads() throws {
        let verifier = try verifier()
        for head in [
            #"{"alg":"none"}"#, #"{"alg":"HS512"}"#, #"{"alg":"RS256"}"#, "{}", #"{"alg":"HS256","crit":["x"]}"#,
        ] {
            #expect(throws: AccessDenied.self) { try verifier.verify(token(head: head)) }
        }
        let unsigned = token(head: #"{"alg":"none"}"#).split(separator: ".").prefix(2).joined(separator: ".") + "."
        #expect(throws: AccessDenied.self) { try verifier.verify(unsigned) }
        let other = Array("another secret of at least 32 bytes".utf8)
        #expect(throws: AccessDenied.self) { try verifier.verify(token(secret: other)) }
        for text in ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "é.é.é", String(repeating: "a", count: 10_000)] {
            #expect(throws: AccessDenied.self) { try verifier.verify(text) }
        }
    }

    @Test("a changed character anywhere in a token is rejected")
    func tampering() throws {
        for (key, token) in [
            (JSONWebTokenKey.hs256(Self.secret), token()), (.es256(Self.ecKey), Self.ecToken),
            (.rs256(Self.rsaKey), Self.rsaToken),
            (.edDSA(Self.ed25519Key.pem), Self.ed25519Key.token(Self.goodClaims)),
        ] {
            let verifier = try verifier(key)
            _ = try verifier.verify(token)
            let letters = Array(token.utf8)
            for index in stride(from: 0, to: letters.count - 1, by: 3) where letters[index] != 0x2E {
                var changed = letters
                changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
                #expect(throws: AccessDenied.self) { try verifier.verify(String(decoding: changed, as: UTF8.self)) }
            }
        }
    }

    @Test("RSA and ECDSA signatures are verified with their own keys, and a public key never serves as a secret")
    func publicKeys() throws {
        let ada = try verifier(.es256(Self.ecKey), audience: "trebuchet", issuer: "https://id.example").verify(
            Self.ecToken)
        #expect(ada.id == "ada")
        #expect(try verifier(.rs256(Self.rsaKey)).verify(Self.rsaToken).roles == ["editor"])
        let rsa = try verifier(.rs256(Self.rsaKey))
        #expect(throws: AccessDenied.self) { try rsa.verify(token(secret: Array(Self.rsaKey.utf8))) }
        #expect(throws: (any Error).self) { try verifier(.rs256(Self.ecKey)) }
        #expect(throws: (any Error).self) { try verifier(.es256("no key")) }
        #expect(throws: (any Error).self) { try verifier(.hs256([1, 2, 3])) }
    }

    @Test("Ed25519 signatures are verified: the example of RFC 8037, and tokens with either name of the algorithm")
    func edDSA() throws {
        // Appendix A.4. Its payload has no claims.
        let token =
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhij"
            + "cNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        let rfc = try verifier(
            .edDSA(
                """
                -----BEGIN PUBLIC KEY-----
                MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
                -----END PUBLIC KEY-----
                """))
        #expect(String(decoding: try rfc.signedBody(of: token), as: UTF8.self) == "Example of Ed25519 signing")
        let key = TestSigningKey("d", .ed25519)
        #expect(throws: AccessDenied.self) { try rfc.verify(key.token(Self.goodClaims)) }
        let own = try verifier(.edDSA(key.pem))
        #expect(try own.verify(key.token(Self.goodClaims)).id == "ada")
        #expect(try own.verify(key.token(Self.goodClaims, head: #"{"alg":"Ed25519"}"#)).id == "ada")
        for head in ["Ed448", "ES256", "none", "eddsa", "HS256"] {
            #expect(throws: AccessDenied.self) {
                try own.verify(key.token(Self.goodClaims, head: #"{"alg":"\#(head)"}"#))
            }
        }
    }

    @Test("a key of another type, on another curve, or of fewer than 2,048 bits is refused")
    func unsuitableKeys() throws {
        let (ec, ed25519) = (TestSigningKey("e").pem, TestSigningKey("d", .ed25519).pem)
        let rsa = TestSigningKey("r", .rsa(bits: 2_048)).pem
        for key in [JSONWebTokenKey.edDSA(ec), .edDSA(rsa), .es256(ed25519), .es256(rsa), .rs256(ec), .rs256(ed25519)] {
            let error = #expect(throws: TransportError.self) { try verifier(key) }
            #expect(error?.message.contains("does not match its algorithm") == true)
        }
        let short = #expect(throws: TransportError.self) {
            try verifier(.rs256(TestSigningKey("r", .rsa(bits: 1_024)).pem))
        }
        #expect(short?.message == "the RSA key for tokens has 1024 bits; RS256 requires at least 2048")
        // P-384.
        #expect(throws: TransportError.self) { try verifier(.es256(Self.otherCurve)) }
    }

    @Test("a bucket admits a burst, then its rate, and returns the wait")
    func bucket() {
        var bucket = TokenBucket(RateLimit(callsPerSecond: 10, burst: 3), now: 0)
        let burst = (0..<4).map { _ in bucket.consume(at: 0) }
        #expect(burst == [nil, nil, nil, 100])
        let later = [bucket.consume(at: 50_000_000), bucket.consume(at: 100_000_000), bucket.consume(at: 100_000_000)]
        #expect(later == [50, nil, 100])
        // A clock that stops or goes backwards adds no tokens.
        let back = bucket.consume(at: 0)
        #expect(back == 100)
        let full = (0..<4).map { _ in bucket.consume(at: 10_000_000_000) }
        #expect(full == [nil, nil, nil, 100])
    }

    private static let ed25519Key = TestSigningKey("d", .ed25519)
    private static let otherCurve = """
        -----BEGIN PUBLIC KEY-----
        MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEN60ZY8mHaCEy9KZShhPb2K0/g2y9hZdS
        /X3qs+KqTaLsNkGojS/lgr+8dWpTWq52PpHJFHDD+V6Sf7cGlMHqGSatg+6TgQ9G
        WV2Tf2z8qw6o0qvlQE7sNlm91+Ohkfg+
        -----END PUBLIC KEY-----
        """
    private static let ecKey = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEUydsZgMUf6oFKt1WNeMvtoaoXIea
        d/SiXFs/wKQIjoop+gz33URZBt4JvF2nDgXKYDvYKtt57EFL7uPrpmDvwQ==
        -----END PUBLIC KEY-----
        """
    private static let ecToken =
        "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEiLCJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOlsidHJl"
        + "YnVjaGV0Iiwib3RoZXIiXSwiZXhwIjoyMDAwMDAwMDAwLCJuYmYiOjEwMDAwMDAwMDAsInJvbGVzIjpbImVkaXRvciJdLCJuYW1lIjoiQ"
        + "WRhIiwibGV2ZWwiOjN9.FwhVIX6KTO7ja7aoAi7t8ivLTfThJ-D6b-2erbJIH0xizEI9dk30XGcRJbiOhxddDAqEvf6WYTUZPng2n1VLrw"
    private static let rsaKey = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAuWUXpcO9XRg9sWJ7sKA/
        IDiDDRvEqzuq+ykQCCvvBGVNYyKehAgJPp8oOUq79Exavrorlp/XMW9jLHojNcIR
        PugiIZ/dqrdsw0TtiX+wErp88ED/a1qVKkNX2EAfZk0D1EnlmIQvTAzxZbt2JXvC
        hOnWfAoa8eoxioLVZW2csGVY6RhVqDlJiINV3PvI6zaWmVsvlbUIlU72zJ+/eChk
        16Ee6ws6TVE5cqEI8mdXBrgX0B7V+KatANWyd7gxo84nj+kQdHcYPOCGzv2lTM46
        01a84s/JzRIUgW5WkypbxWym5OWXqWJ+cqEnjL0nIH1Rz6dWj8XofmExelw0B/VP
        UQIDAQAB
        -----END PUBLIC KEY-----
        """
    private static let rsaToken =
        "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEiLCJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiL"
        + "CJhdWQiOlsidHJlYnVjaGV0Iiwib3RoZXIiXSwiZXhwIjoyMDAwMDAwMDAwLCJuYmYiOjEwMDAwMDAwMDAsInJvbGV"
        + "zIjpbImVkaXRvciJdLCJuYW1lIjoiQWRhIiwibGV2ZWwiOjN9.qwPufemU6FacriuBkLvbUdlasCn69qiiB_T6dFdN"
        + "nLHnuAmbOqJ8U43fq_qVGkZ76VkZ0GWRfLL59ZEBUxcXFQ0EB9WSSOZxX52JNJr8nDRUvj_1Tdhu39-r7KMKL0IntS"
        + "UwPDeebeM-rQLfR6lPd1ssgCKJWOeU1OOnvrKVg0zE9RsyrLKP5euetNzp-lMTlm-zZrrcdtsiD4ETPWojcZco3rQ8"
        + "1BweNTwaq0NKlcBrWXmu3f6-schr1twNpzWP2eJKGx-Xrsixo7iHQ27dJXVY0F_dH_UKqZzA5lhrYOKszfZJSWDiJ0"
        + "s4luYBQ4cQ0nY7wJwpQsz1HMCBWdSSZw"
}
