import Foundation
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting
import TrebuchetTokens

/// Claims, algorithms and keys of tokens whose issuer publishes its keys.
@Suite(.timeLimit(.minutes(5))) struct TokenIssuersTests {
    @Test(
        "a token of each algorithm gives a principal, with a key set and with discovery",
        arguments: JSONWebTokenAlgorithm.allCases, [false, true])
    func principal(algorithm: JSONWebTokenAlgorithm, discovery: Bool) async throws {
        let fixture = try TokenFixture(algorithm, discovery: discovery)
        let principal = try await fixture.issuers.verify(
            fixture.token("ada", #","roles":["editor","b"],"team":"red","level":3,"admin":true"#))
        #expect(
            principal
                == Principal(
                    id: "ada", roles: ["editor", "b"],
                    claims: ["team": "red", "level": "3", "iss": fixture.issuer.url]))
        #expect(fixture.issuer.requestCount == (discovery ? 2 : 1))
        #expect(await fixture.outcome(fixture.token("bob")) == "bob")
        #expect(fixture.issuer.requestCount == (discovery ? 2 : 1))
        await fixture.close()
    }

    @Test("a test issuer makes tokens with roles, claims and an expiry")
    func testIssuer() async throws {
        let issuer = try TestTokenIssuer(.edDSA)
        let issuers = try TokenIssuers([TokenIssuer(issuer.url, audience: "app")], log: nil)
        let principal = try await issuers.verify(
            issuer.token(for: "ada", audience: "app", roles: ["a"], claims: ["team": "r\"ed"]))
        #expect(principal.id == "ada" && principal.roles == ["a"] && principal.claims["team"] == "r\"ed")
        await #expect(throws: AccessDenied.unauthenticated("the token was not accepted: it has expired")) {
            try await issuers.verify(issuer.token(for: "ada", audience: "app", expiresIn: .seconds(-60)))
        }
        await #expect(throws: AccessDenied.unauthenticated("the token was not accepted: its audience is wrong")) {
            try await issuers.verify(issuer.token(for: "ada", audience: "other"))
        }
        await issuer.close()
    }

    @Test(
        "the claims of a token are checked",
        arguments: [
            (#""iss":"I","sub":"a","aud":"app","exp":1800000100"#, "a"),
            (#""iss":"I","sub":"a","aud":["x","app"],"exp":1800000100"#, "a"),
            (#""iss":"I","sub":"a","aud":"web","exp":1800000100"#, "a"),
            (#""iss":"I/","sub":"a","aud":"app","exp":1800000100"#, "its issuer is not accepted"),
            (#""iss":"https://e.v","sub":"a","aud":"app","exp":1800000100"#, "its issuer is not accepted"),
            (#""sub":"a","aud":"app","exp":1800000100"#, "its issuer is not accepted"),
            (#""iss":["I"],"sub":"a","aud":"app","exp":1800000100"#, "its claims are not JSON"),
            (#""iss":"I","sub":"a","aud":"APP","exp":1800000100"#, "its audience is wrong"),
            (#""iss":"I","sub":"a","aud":[],"exp":1800000100"#, "its audience is wrong"),
            (#""iss":"I","sub":"a","exp":1800000100"#, "its audience is wrong"),
            // Times, with a leeway of 30 seconds.
            (#""iss":"I","sub":"a","aud":"app""#, "it has no expiry"),
            (#""iss":"I","sub":"a","aud":"app","exp":1799999971"#, "a"),
            (#""iss":"I","sub":"a","aud":"app","exp":1799999970"#, "it has expired"),
            (#""iss":"I","sub":"a","aud":"app","exp":1800000100,"nbf":1800000030"#, "a"),
            (#""iss":"I","sub":"a","aud":"app","exp":1800000100,"nbf":1800000031"#, "it is not valid yet"),
            (#""iss":"I","aud":"app","exp":1800000100"#, "it has no subject"),
            (#""iss":"I","sub":7,"aud":"app","exp":1800000100"#, "its claims are not JSON"),
        ])
    func claims(_ claims: String, outcome: String) async throws {
        let issuer = try TestTokenIssuer()
        let fixture = try TokenFixture(
            issuer, [TokenIssuer(issuer.url, audiences: ["app", "web"], keys: .keySetURL(issuer.keySetURL))])
        let claims = claims.split(separator: "\"I", maxSplits: 1, omittingEmptySubsequences: false)
            .joined(separator: "\"\(issuer.url)")
        #expect(await fixture.outcome(issuer.key.token("{\(claims)}")) == outcome)
        await fixture.close()
    }

    @Test("a token that no key of the issuer has signed with its own algorithm is refused")
    func forgeries() async throws {
        let (rsa, ec) = (TestSigningKey("r", .rsa(bits: 2_048)), TestSigningKey("e"))
        let (ed25519, stranger) = (TestSigningKey("d", .ed25519), TestSigningKey("s"))
        let fixture = try TokenFixture()
        fixture.issuer.publish([rsa.json, ec.json, ed25519.json])
        let claims = fixture.claims()
        func head(_ algorithm: String, _ id: String, _ more: String = "") -> String {
            #"{"alg":"\#(algorithm)","kid":"\#(id)"\#(more)}"#
        }
        /// A token whose signature is the HMAC with a secret.
        func authenticated(_ head: String, by secret: String) -> String {
            let signed = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
            return signed + "." + Base64URL.encode(Digest.hmacSHA256(Array(signed.utf8), key: Array(secret.utf8)))
        }
        /// A token without a signature.
        func unsigned(_ head: String) -> String {
            Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8)) + "."
        }
        for key in [rsa, ec, ed25519] { #expect(await fixture.outcome(key.token(claims)) == "ada") }
        #expect(await fixture.outcome(ed25519.token(claims, head: head("Ed25519", "d"))) == "ada")
        #expect(
            await fixture.outcome(ec.token(claims, head: #"{"alg":"ES256"}"#)) == "ada", "without the name of a key")

        let (algorithm, key, signature) = (
            "its algorithm is not accepted", "its key is unknown", "its signature is wrong"
        )
        // The signature of another token.
        let spliced =
            (ec.token(claims).split(separator: ".").prefix(2) + ec.token("{}").split(separator: ".").suffix(1))
            .joined(separator: ".")
        let refused: [(String, String)] = [
            // No signature, or another kind of it: a public key is no secret.
            (unsigned(head("none", "r")), algorithm), (unsigned(head("None", "r")), algorithm),
            (unsigned(head("ES256", "e")), signature), (unsigned(head("RS256", "r")), signature),
            (unsigned(head("EdDSA", "d")), signature),
            (authenticated(head("HS256", "r"), by: rsa.pem), algorithm),
            (authenticated(head("HS256", "e"), by: ec.json), algorithm),
            (authenticated(head("RS256", "r"), by: rsa.pem), signature),
            (rsa.token(claims, head: head("RS512", "r")), algorithm),
            (rsa.token(claims, head: head("PS256", "r")), algorithm),
            (ec.token(claims, head: head("es256", "e")), algorithm),
            // A key for another algorithm.
            (ed25519.token(claims, head: head("ES256", "d")), key),
            (ed25519.token(claims, head: head("ES256", "e")), signature),
            (ec.token(claims, head: head("EdDSA", "e")), key), (ec.token(claims, head: head("EdDSA", "d")), signature),
            (ec.token(claims, head: head("RS256", "e")), key), (rsa.token(claims, head: head("ES256", "r")), key),
            // A key of somebody else, whatever the header says about it.
            (stranger.token(claims), key), (stranger.token(claims, head: head("ES256", "e")), signature),
            (stranger.token(claims, head: #"{"alg":"ES256"}"#), key),
            (stranger.token(claims, head: #"{"alg":"ES256","kid":7}"#), key),
            (stranger.token(claims, head: #"{"alg":"ES256","jwk":\#(stranger.json)}"#), key),
            (stranger.token(claims, head: head("ES256", "e", #","jku":"https://e.v/keys""#)), signature),
            (stranger.token(claims, head: head("ES256", "../e")), key),
            (
                ec.token(claims, head: head("ES256", "e", #","crit":["b64"],"b64":false"#)),
                "it has unsupported critical extensions"
            ),
            (spliced, signature),
            ("", "it is not a signed token"), (ec.token(claims) + ".", "it is not a signed token"),
            (ec.token(claims) + String(repeating: "A", count: 8_192), "it is too long"),
        ]
        for (token, reason) in refused { #expect(await fixture.outcome(token) == reason, "\(token)") }
        #expect(fixture.issuer.requestCount == 1, "no refused token has caused a fetch")
        await fixture.close()
    }

    @Test("an issuer may be limited to some algorithms")
    func algorithms() async throws {
        let fixture = try TokenFixture { $0.algorithms = [.es256] }
        let rsa = TestSigningKey("r", .rsa(bits: 2_048))
        fixture.issuer.publish([rsa.json, fixture.issuer.key.json])
        #expect(await fixture.outcome(fixture.token()) == "ada")
        #expect(await fixture.outcome(fixture.token(key: rsa)) == "its algorithm is not accepted")
        await fixture.close()
    }

    @Test("a key verifies only the tokens of its issuer")
    func otherIssuer() async throws {
        let (one, other) = (try TestTokenIssuer(), try TestTokenIssuer())
        // The keys of both have the same id, and those of one have another one too.
        let key = TestSigningKey("x")
        one.publish([one.key.json, key.json])
        var second = try TokenIssuer(other.url, audience: "app", keys: .keySetURL(other.keySetURL))
        second.principalPrefix = "other:"
        let fixture = try TokenFixture(
            one, [TokenIssuer(one.url, audience: "app", keys: .keySetURL(one.keySetURL)), second])
        #expect(one.key.id == other.key.id)
        #expect(await fixture.outcome(one.key.token(fixture.claims())) == "ada")
        #expect(await fixture.outcome(other.key.token(fixture.claims(issuer: other.url))) == "other:ada")
        #expect(await fixture.outcome(key.token(fixture.claims())) == "ada")
        #expect(await fixture.outcome(other.key.token(fixture.claims())) == "its signature is wrong")
        #expect(await fixture.outcome(one.key.token(fixture.claims(issuer: other.url))) == "its signature is wrong")
        #expect(await fixture.outcome(key.token(fixture.claims(issuer: other.url))) == "its key is unknown")
        await other.close()
        await fixture.close()
    }

    @Test("the users of several issuers have different ids, unless the issuers have the same prefix")
    func prefixes() async throws {
        let (one, other, third) = (try TestTokenIssuer(), try TestTokenIssuer(), try TestTokenIssuer())
        func settings(_ issuer: TestTokenIssuer, _ prefix: String?) throws -> TokenIssuer {
            var settings = try TokenIssuer(issuer.url, audience: "app", keys: .keySetURL(issuer.keySetURL))
            settings.principalPrefix = prefix
            return settings
        }
        let fixture = try TokenFixture(
            one, [settings(one, nil), settings(other, "p:"), settings(third, "p:")])
        func outcome(_ issuer: TestTokenIssuer, _ subject: String) async -> String {
            await fixture.outcome(issuer.key.token(fixture.claims(subject, issuer: issuer.url)))
        }
        #expect(await outcome(one, "ada") == "ada")
        #expect(await outcome(other, "ada") == "p:ada")
        #expect(await outcome(third, "ada") == "p:ada")
        #expect(await outcome(one, "p:ada") == "its subject has the prefix of another issuer")
        #expect(await outcome(one, "p") == "p")
        #expect(await outcome(other, "p:ada") == "p:p:ada")
        for issuer in [one, other, third] { await issuer.close() }
    }

    @Test(
        "invalid issuers are refused, with the member named",
        arguments: [
            ("", "app", .keySetURL("https://a.b"), "issuer"), ("https://a.b", "", .discovery, "audience"),
            ("http://a.b", "app", .discovery, "issuer"), ("any", "app", .discovery, "issuer"),
            ("https://a.b", "app", .keySetURL("http://a.b/k"), "keys"),
            ("https://a.b", "app", .keySetURL("http://localhost.a.b/k"), "keys"),
            ("https://a.b", "app", .keySetURL("http://127.0.0.1.a.b/k"), "keys"),
            ("https://a.b", "app", .keySetURL("http://localhost@a.b/k"), "keys"),
            ("https://a.b", "app", .keySetURL("file:///etc/passwd"), "keys"),
            ("https://a.b", "app", .keySetURL("https://u:p@a.b/k"), "keys"),
            ("https://a.b", "app", .discoveryURL("http://a.b/d"), "keys"),
            ("any", "app", .keySetURL("https://a.b"), nil),
            ("any", "app", .keySetURL("http://localhost:1/k"), nil),
            ("any", "app", .keySetURL("http://[::1]:1/k"), nil),
            ("any", "app", .discoveryURL("https://a.b/d"), nil), ("http://127.0.0.1:1", "app", .discovery, nil),
        ] as [(String, String, TokenIssuer.Keys, String?)])
    func problems(_ issuer: String, _ audience: String, keys: TokenIssuer.Keys, member: String?) {
        var problem: TokenIssuer.Problem?
        do throws(TokenIssuer.Problem) {
            _ = try TokenIssuer(issuer, audience: audience, keys: keys)
        } catch {
            problem = error
        }
        #expect(problem?.member == member, "\(String(describing: problem))")
    }

    @Test("the page of limits has the defaults of an issuer")
    func limits() throws {
        let page = try String(contentsOf: packageRoot.appending(path: "Docs/Reference/Limits.md"), encoding: .utf8)
        let issuer = try TokenIssuer("https://a.b", audience: "app")
        #expect(page.contains("| `leeway` | \(Int(issuer.leeway / .seconds(1))) s |"))
        #expect(page.contains("| `staleKeyTime` | \(Int(issuer.staleKeyTime / .seconds(3_600))) hours |"))
        #expect(issuer.algorithms == [.rs256, .es256, .edDSA] && issuer.principalPrefix == nil)
    }

    @Test("lists of issuers that could confuse their users are refused")
    func lists() throws {
        func member(_ issuers: [(String, String?)]) throws -> String? {
            let issuers = try issuers.map { issuer, prefix in
                var settings = try TokenIssuer(issuer, audience: "app")
                settings.principalPrefix = prefix
                return settings
            }
            do throws(TokenIssuer.Problem) {
                _ = try TokenIssuers(issuers)
                return nil
            } catch {
                return error.member
            }
        }
        #expect(try member([]) == "issuers")
        #expect(try member([("https://a.b", nil)]) == nil)
        #expect(try member([("https://a.b", nil), ("https://a.b", "x")]) == "issuer")
        #expect(try member([("https://a.b", nil), ("https://a.c", nil)]) == "principalPrefix")
        #expect(try member([("https://a.b", nil), ("https://a.c", "")]) == "principalPrefix")
        #expect(try member([("https://a.b", nil), ("https://a.c", "x")]) == nil)
        #expect(try member([("https://a.b", "x"), ("https://a.c", "x")]) == nil)
        #expect(try member([("https://a.b", ""), ("https://a.c", "")]) == nil)
        #expect(try member([("https://a.b", nil), ("https://a.c", "x"), ("https://a.d", nil)]) == "principalPrefix")
    }
}
