import Networking
import Relays
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// Signing in with ID tokens of an issuer on this machine.
@Suite(.timeLimit(.minutes(5))) struct OpenIDTests {
    /// An issuer with one key, and a server that knows it as `local` (by the URL of its keys) and `found` (by discovery).
    private struct Fixture {
        let issuer: Issuer
        let key: TestSigningKey
        let server: AuthServer

        init(_ key: TestSigningKey = TestSigningKey("1"), linking: Bool = true) async throws {
            self.key = key
            issuer = try Issuer()
            issuer.show([key])
            issuer.show(
                #"{"issuer":"\#(issuer.url)","jwks_uri":"\#(issuer.url)/jwks"}"#,
                at: "/.well-known/openid-configuration")
            var local = try OpenIDProvider(
                name: "local", issuer: "https://a.b", audience: "app", keys: .url("\(issuer.url)/jwks"))
            local.linksAccountsByEmail = linking
            let found = try OpenIDProvider(name: "found", issuer: issuer.url, audience: "app")
            server = try await AuthServer(providers: [local, found])
        }

        func end() async {
            await server.stop()
            await issuer.close()
        }

        func token(
            _ subject: String = "7", _ more: String = "", issuer: String = "https://a.b", key: TestSigningKey? = nil,
            lifetime: Int64 = 300
        ) -> String {
            let expiry = server.time.now / 1000 + lifetime
            return (key ?? self.key).token(
                #"{"iss":"\#(issuer)","sub":"\#(subject)","aud":"app","exp":\#(expiry)\#(more)}"#)
        }

        func outcome(_ token: String, provider: String = "local", nonce: String? = nil) async throws -> AuthError? {
            let client = try await server.client(.local)
            defer { Task { await client.close() } }
            do {
                _ = try await client.auth.signIn(idToken: token, provider: provider, nonce: nonce)
                return nil
            } catch {
                return error as? AuthError
            }
        }
    }

    private static let verified = #","email":"ada@b.c","email_verified":true"#

    @Test("tokens with keys of both kinds are accepted, with a key set and with discovery", arguments: [true, false])
    func signsIn(rsa: Bool) async throws {
        let fixture = try await Fixture(TestSigningKey("1", rsa ? .rsa(bits: 2048) : .ec))
        let client = try await fixture.server.client()
        let grant = try await client.auth.signIn(idToken: fixture.token(), provider: "local", nonce: nil)
        #expect(!grant.user.isGuest && grant.user.email == nil)
        #expect(try await client.caller() == grant.user.id)
        #expect(try await client.resolve(ServiceCallerReporter.self, id: "mirror").roles() == ["user"])
        let token = fixture.token(issuer: fixture.issuer.url)
        let found = try await client.auth.signIn(idToken: token, provider: "found", nonce: nil)
        #expect(found.user.id != grant.user.id, "a subject at another issuer is another user")
        let again = try await client.auth.signIn(idToken: fixture.token(), provider: "local", nonce: nil)
        #expect(again.user == grant.user)
        await client.close()
        await fixture.end()
    }

    @Test("an invalid token of a provider is refused")
    func refused() async throws {
        let fixture = try await Fixture()
        let other = TestSigningKey("1")
        func isInvalid(_ token: String, nonce: String? = nil) async throws -> Bool {
            if case .invalidToken = try await fixture.outcome(token, nonce: nonce) { true } else { false }
        }
        #expect(try await isInvalid(fixture.token(key: other)), "another key with this name")
        #expect(try await isInvalid(fixture.token(key: TestSigningKey("2"))), "an unknown key")
        #expect(try await isInvalid(fixture.token(issuer: fixture.issuer.url)), "another issuer")
        #expect(try await isInvalid(fixture.token(lifetime: -61)))
        #expect(try await isInvalid(fixture.token("7", #","nonce":"n""#)))
        #expect(try await isInvalid(fixture.token(), nonce: "n"))
        for head in [#"{"alg":"none"}"#, #"{"alg":"HS256","kid":"1"}"#, #"{"alg":"RS256","kid":"1"}"#, "{}", "x"] {
            #expect(try await isInvalid(fixture.key.token("{}", head: head)))
        }
        for token in ["", ".", "a.b.c", String(repeating: "x", count: 9000), fixture.token() + "A"] {
            #expect(try await isInvalid(token))
        }
        #expect(try await fixture.outcome(fixture.token(), provider: "other") == .unknownProvider)
        #expect(try await fixture.outcome(fixture.token("7", #","nonce":"n""#), nonce: "n") == nil)
        await fixture.end()
    }

    @Test("a verified address leads to its account, and an unverified one does not")
    func linking() async throws {
        let fixture = try await Fixture()
        let client = try await fixture.server.client()
        _ = try await client.auth.sendMagicCode(to: "ada@b.c")
        let ada = try await client.auth.verifyMagicCode(
            email: "ada@b.c", code: try #require(fixture.server.mailbox.code(for: "ada@b.c")))
        let other = try await fixture.server.client()
        let unverified = #","email":"ada@b.c","email_verified":false"#
        let eve = try await other.auth.signIn(idToken: fixture.token("eve", unverified), provider: "local", nonce: nil)
        #expect(eve.user.id != ada.user.id && eve.user.email == nil)
        let linked = try await other.auth.signIn(
            idToken: fixture.token("7", Self.verified), provider: "local", nonce: nil)
        #expect(linked.user == ada.user)
        // From now on the subject decides, whatever address the provider reports.
        let later = try await other.auth.signIn(
            idToken: fixture.token("7", #","email":"new@b.c","email_verified":true"#), provider: "local", nonce: nil)
        #expect(later.user == ada.user)
        for client in [client, other] { await client.close() }
        await fixture.end()
    }

    @Test("a provider without linking creates a separate account, without the address")
    func notLinking() async throws {
        let fixture = try await Fixture(linking: false)
        let client = try await fixture.server.client()
        _ = try await client.auth.sendMagicCode(to: "ada@b.c")
        let ada = try await client.auth.verifyMagicCode(
            email: "ada@b.c", code: try #require(fixture.server.mailbox.code(for: "ada@b.c")))
        let other = try await fixture.server.client()
        let own = try await other.auth.signIn(idToken: fixture.token("7", Self.verified), provider: "local", nonce: nil)
        #expect(own.user.id != ada.user.id && own.user.email == nil)
        for client in [client, other] { await client.close() }
        await fixture.end()
    }

    @Test("a provider without linking sets no address, even if no account has it yet")
    func notLinkingFreeAddress() async throws {
        let fixture = try await Fixture(linking: false)
        let (eve, ada) = (try await fixture.server.client(), try await fixture.server.client())
        let stranger = try await eve.auth.signIn(
            idToken: fixture.token("7", Self.verified), provider: "local", nonce: nil)
        #expect(stranger.user.email == nil)
        _ = try await ada.auth.sendMagicCode(to: "ada@b.c")
        let owner = try await ada.auth.verifyMagicCode(
            email: "ada@b.c", code: try #require(fixture.server.mailbox.code(for: "ada@b.c")))
        #expect(owner.user.id != stranger.user.id && owner.user.email == "ada@b.c")
        for client in [eve, ada] { await client.close() }
        await fixture.end()
    }

    @Test("a guest becomes the user of a new identity and keeps the id; the account outlives its sessions")
    func guest() async throws {
        let fixture = try await Fixture()
        let client = try await fixture.server.client()
        let guest = try await client.auth.signInAsGuest()
        let user = try await client.auth.signIn(
            idToken: fixture.token("7", Self.verified), provider: "local", nonce: nil)
        #expect(user.user == User(id: guest.user.id, email: "ada@b.c"))
        try await client.auth.signOut(user.refreshToken)
        let without = try await client.auth.signIn(idToken: fixture.token("8"), provider: "local", nonce: nil)
        try await client.auth.signOut(without.refreshToken)
        for (subject, id) in [("7", user.user.id), ("8", without.user.id)] {
            let again = try await client.auth.signIn(idToken: fixture.token(subject), provider: "local", nonce: nil)
            #expect(again.user.id == id)
        }
        await client.close()
        await fixture.end()
    }

    @Test("keys are cached for the time set by the provider, and fetched by one request at a time")
    func caching() async throws {
        let fixture = try await Fixture()
        fixture.issuer.show([fixture.key], fields: "Cache-Control: public, max-age=600\r\n")
        fixture.issuer.answers.update { $0.isHeld = true }
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<10 {
                let token = fixture.token("\(number)")
                group.addTask { (try? await fixture.outcome(token)) == .some(nil) }
            }
            await fixture.issuer.asked.wait(for: "/jwks")
            fixture.issuer.answers.update { $0.isHeld = false }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes == Array(repeating: true, count: 10))
        #expect(fixture.issuer.asked.entries == ["/jwks"])
        // In the last quarter a token is verified with the cached keys while others are fetched.
        fixture.server.time.advance(by: .seconds(449))
        #expect(try await fixture.outcome(fixture.token()) == nil)
        #expect(fixture.issuer.asked.entries.count == 1)
        fixture.issuer.answers.update { $0.isHeld = true }
        fixture.server.time.advance(by: .seconds(1))
        #expect(try await fixture.outcome(fixture.token()) == nil)
        await fixture.issuer.asked.wait { $0.count == 2 }
        fixture.issuer.answers.update { $0.isHeld = false }
        await fixture.end()
    }

    @Test("a new key is fetched, at most every 30 seconds, and a withdrawn one is refused")
    func rotation() async throws {
        let fixture = try await Fixture()
        #expect(try await fixture.outcome(fixture.token()) == nil)
        let next = TestSigningKey("2")
        fixture.issuer.show([next])
        for _ in 0..<3 {
            #expect(
                try await fixture.outcome(fixture.token(key: next)) == .invalidToken("the provider has no such key"))
        }
        #expect(fixture.issuer.asked.entries.count == 1)
        fixture.server.time.advance(by: .seconds(30))
        #expect(try await fixture.outcome(fixture.token(key: next)) == nil)
        #expect(fixture.issuer.asked.entries.count == 2)
        #expect(try await fixture.outcome(fixture.token()) != nil, "the token of the withdrawn key")
        #expect(fixture.issuer.asked.entries.count == 2)
        await fixture.end()
    }

    @Test(
        "a failing provider has a specific error, and is asked again after ten seconds",
        arguments: [
            "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 302 Go\r\nLocation: /jwks2\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"keys\":[]}",
            "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: " ", count: 300 << 10), "what?\r\n\r\n",
        ])
    func fails(_ answer: String) async throws {
        let fixture = try await Fixture()
        fixture.issuer.answers.update { $0.pages["/jwks"] = answer }
        for _ in 0..<3 { #expect(try await fixture.outcome(fixture.token()) == .providerUnavailable) }
        #expect(fixture.issuer.asked.entries == ["/jwks"])
        #expect(fixture.server.lines.entries.contains { $0.contains("provider 'local'") })
        fixture.issuer.show([fixture.key])
        fixture.server.time.advance(by: .seconds(10))
        #expect(try await fixture.outcome(fixture.token()) == nil)
        // Later it is unavailable: its keys are used for a day after their expiry, unless it has withdrawn them.
        fixture.issuer.answers.update { $0.pages["/jwks"] = answer }
        fixture.server.time.advance(by: .seconds(2 * 60 * 60))
        let isWithdrawn = answer.hasSuffix("{\"keys\":[]}")
        #expect(try await fixture.outcome(fixture.token()) == (isWithdrawn ? .providerUnavailable : nil))
        fixture.server.time.advance(by: .seconds(24 * 60 * 60))
        #expect(try await fixture.outcome(fixture.token()) == .providerUnavailable)
        await fixture.end()
    }

    @Test("while a provider is slow, other users can sign in")
    func slow() async throws {
        let fixture = try await Fixture()
        fixture.issuer.answers.update { $0.isHeld = true }
        async let waiting = fixture.outcome(fixture.token())
        await fixture.issuer.asked.wait(for: "/jwks")
        let client = try await fixture.server.client()
        _ = try await client.auth.signInAsGuest()
        fixture.issuer.answers.update { $0.isHeld = false }
        #expect(try await waiting == nil)
        await client.close()
        await fixture.end()
    }

    @Test("discovery of another issuer, or of keys elsewhere without TLS, is refused")
    func discovery() async throws {
        let fixture = try await Fixture()
        for (issuer, keys) in [("https://e.v", "\(fixture.issuer.url)/jwks"), (fixture.issuer.url, "http://e.v/jwks")] {
            fixture.issuer.show(
                #"{"issuer":"\#(issuer)","jwks_uri":"\#(keys)"}"#, at: "/.well-known/openid-configuration")
            let token = fixture.token(issuer: fixture.issuer.url)
            #expect(try await fixture.outcome(token, provider: "found") == .providerUnavailable)
            fixture.server.time.advance(by: .seconds(10))
        }
        #expect(!fixture.issuer.asked.entries.contains("/jwks"))
        await fixture.end()
    }

    @Test("keys that are too short or of unknown kinds are ignored")
    func odd() async throws {
        let fixture = try await Fixture()
        let short = TestSigningKey("short", .rsa(bits: 1024))
        let odd = #"{"kty":"OKP","crv":"Ed25519","kid":"x","x":"AA"},{"kty":"RSA","n":"AQAB","e":"AQAB"},3"#
        fixture.issuer.show(#"{"keys":[\#(odd),\#(short.json),\#(fixture.key.json)]}"#)
        #expect(try await fixture.outcome(fixture.token(key: short)) != nil)
        #expect(try await fixture.outcome(fixture.token()) == nil)
        await fixture.end()
    }
}
