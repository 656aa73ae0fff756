import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite("Claims of a JSON Web Token") struct TokenClaimsTests {
    private static let secret = [UInt8](repeating: 7, count: 32)
    private static let now: Int64 = 1_000_000

    private func token(_ claims: String, head: String = #"{"alg":"HS256"}"#) -> String {
        let signed = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return signed + "." + Base64URL.encode(Digest.hmacSHA256(Array(signed.utf8), key: Self.secret))
    }

    private func outcome(_ token: String, audience: String? = nil, leeway: Duration = .seconds(30)) throws -> String {
        let verifier = try JSONWebTokenVerifier(
            key: .hs256(Self.secret), audience: audience, issuer: nil, leeway: leeway, now: { Self.now })
        do {
            let principal = try verifier.verify(token)
            let claims = principal.claims.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
            return principal.id + principal.roles.sorted().map { " +" + $0 }.joined() + claims
        } catch AccessDenied.unauthenticated(let reason) {
            return String(reason.dropFirst("the token was not accepted: ".count))
        }
    }

    @Test(
        "times are exact to the second, with the leeway",
        arguments: [
            (#""exp":999971"#, "a"), (#""exp":999970"#, "it has expired"), (#""exp":999969"#, "it has expired"),
            (#""exp":2000000,"nbf":1000030"#, "a"), (#""exp":2000000,"nbf":1000031"#, "it is not valid yet"),
            (#""x":1"#, "it has no expiry"), (#""exp":999970.5"#, "a"),
        ])
    func times(claims: String, outcome text: String) throws {
        let found = try outcome(token(#"{"sub":"a",\#(claims)}"#))
        #expect(found.split(separator: " x=").first.map(String.init) == text)
    }

    @Test("without leeway a token expires at its second")
    func noLeeway() throws {
        #expect(try outcome(token(#"{"sub":"a","exp":1000001}"#), leeway: .zero) == "a")
        #expect(try outcome(token(#"{"sub":"a","exp":1000000}"#), leeway: .zero) == "it has expired")
        #expect(try outcome(token(#"{"sub":"a","exp":1000001,"nbf":1000000}"#), leeway: .zero) == "a")
    }

    @Test(
        "texts and numbers are claims; other values are omitted",
        arguments: [
            (#""n":3"#, " n=3"), (#""n":3.0"#, " n=3"), (#""n":2.5"#, " n=2.5"), (#""n":-7"#, " n=-7"),
            (#""n":"x""#, " n=x"),
            (#""n":true"#, ""), (#""n":null"#, ""), (#""n":[1]"#, ""), (#""n":{}"#, ""),
            (#""roles":["b","a"]"#, " +a +b"),
            (#""n":1e300"#, " n=0"), (#""iss":"i","aud":"x","nbf":1"#, ""),
        ])
    func claims(claim: String, text: String) throws {
        #expect(try outcome(token(#"{"sub":"a","exp":2000000,\#(claim)}"#)) == "a" + text)
    }

    @Test(
        "an invalid token reports its fault",
        arguments: [
            ("", "it is not a signed token"), ("a", "it is not a signed token"), ("a.b", "it is not a signed token"),
            ("e30.e30.e30.e30", "it is not a signed token"), ("e30.e30.!", "it is not a signed token"),
            ("!.e30.e30", "it is not a signed token"), ("e30.!.e30", "it is not a signed token"),
            ("e30.e30.e30", "its header is not JSON"),
        ])
    func noTokens(text: String, why: String) throws { #expect(try outcome(text) == why) }

    @Test(
        "a header names the verifier's algorithm, and has no critical extensions",
        arguments: [
            (#"{"alg":"none"}"#, "it is not signed with HS256"), (#"{"alg":"HS512"}"#, "it is not signed with HS256"),
            (#"{"alg":"HS256","crit":[]}"#, "it has unsupported critical extensions"),
            (#"{"alg":"HS256","typ":"JWT"}"#, "a"),
            ("[]", "its header is not JSON"),
        ])
    func heads(head: String, text: String) throws {
        #expect(try outcome(token(#"{"sub":"a","exp":2000000}"#, head: head)) == text)
    }

    @Test(
        "the audience is one, or among several",
        arguments: [
            (#""aud":"app""#, "a"), (#""aud":["x","app"]"#, "a"), (#""aud":["x"]"#, "its audience is wrong"),
            (#""aud":[]"#, "its audience is wrong"), (#""x":""#, "its audience is wrong"),
        ])
    func audiences(claim: String, text: String) throws {
        let claim = claim == #""x":""# ? #""x":true"# : claim
        #expect(try outcome(token(#"{"sub":"a","exp":2000000,\#(claim)}"#), audience: "app") == text)
    }

    @Test("a token has at most 8 KiB", arguments: [0, 1])
    func longest(more: Int) throws {
        // Claims grow by four characters for three bytes of a name; the signature's length is adjusted for the remainder.
        func made(_ count: Int) -> String {
            token(#"{"sub":"\#(String(repeating: "a", count: count))","exp":2000000}"#)
        }
        var count = 5_800
        while made(count + 1).utf8.count <= 8 << 10 { count += 1 }
        let found = try outcome(made(count + more))
        #expect(found == (more == 0 ? String(repeating: "a", count: count) : "it is too long"))
    }

    @Test("a secret has at least 32 bytes", arguments: [(31, false), (32, true)])
    func secrets(count: Int, isGood: Bool) {
        let verifier = try? JSONWebTokenVerifier(key: .hs256([UInt8](repeating: 1, count: count)))
        #expect((verifier != nil) == isGood)
    }
}
