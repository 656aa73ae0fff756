import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting
import TrebuchetTokens

/// Fetches of keys: rotation, rates, outages.
@Suite(.timeLimit(.minutes(5))) struct KeyRotationTests {
    @Test("the first token of a new key causes a fetch, and withdrawn keys are refused", arguments: [false, true])
    func rotation(discovery: Bool) async throws {
        let fixture = try TokenFixture(discovery: discovery)
        let requests = discovery ? 2 : 1
        let first = fixture.token()
        #expect(await fixture.outcome(first) == "ada")
        fixture.issuer.rotate()
        fixture.time.advance(by: 30)
        #expect(await fixture.outcome(fixture.token("bob")) == "bob")
        #expect(fixture.issuer.requestCount == 2 * requests)
        #expect(await fixture.outcome(first) == "ada", "the previous key is still in the key set")
        fixture.issuer.rotate(withdrawingOldKeys: true)
        fixture.time.advance(by: 30)
        #expect(await fixture.outcome(fixture.token("eve")) == "eve")
        #expect(await fixture.outcome(first) == "its key is unknown")
        #expect(fixture.issuer.requestCount == 3 * requests)
        await fixture.close()
    }

    @Test("1,000 tokens with random keys cause one fetch in 30 seconds, and none hinders the issuer's tokens")
    func strangers() async throws {
        let fixture = try TokenFixture(maxAge: .seconds(24 * 60 * 60))
        let claims = fixture.claims()
        let stranger = TestSigningKey("s")
        func flood() async -> Set<String> {
            await withTaskGroup(of: String.self) { group in
                for _ in 0..<1_000 {
                    let head = #"{"alg":"ES256","kid":"\#(UInt64.random(in: 0 ... .max))"}"#
                    group.addTask { await fixture.outcome(stranger.token(claims, head: head)) }
                }
                return await group.reduce(into: []) { $0.insert($1) }
            }
        }
        #expect(await flood() == ["its key is unknown"])
        #expect(fixture.issuer.requestCount == 1)
        #expect(await flood() == ["its key is unknown"])
        #expect(await fixture.outcome(fixture.token()) == "ada")
        #expect(fixture.issuer.requestCount == 1)
        fixture.time.advance(by: 30)
        #expect(await flood() == ["its key is unknown"])
        #expect(fixture.issuer.requestCount == 2)
        fixture.time.advance(by: 29)
        #expect(await flood() == ["its key is unknown"])
        #expect(fixture.issuer.requestCount == 2)
        // A key that is published meanwhile is known after the next fetch, at the latest 30 s later.
        fixture.issuer.rotate()
        #expect(await fixture.outcome(fixture.token("bob")) == "its key is unknown")
        fixture.time.advance(by: 1)
        #expect(await fixture.outcome(fixture.token("bob")) == "bob")
        #expect(fixture.issuer.requestCount == 3)
        await fixture.close()
    }

    @Test("the issuer's tokens need no fetch while strangers cause failing ones")
    func strangersInOutage() async throws {
        let fixture = try TokenFixture()
        #expect(await fixture.outcome(fixture.token()) == "ada")
        fixture.issuer.isDown = true
        fixture.time.advance(by: 30)
        let stranger = TestSigningKey("s")
        for _ in 0..<100 {
            #expect(await fixture.outcome(fixture.token(key: stranger)) == "unavailable, retry after 30.0 seconds")
        }
        #expect(await fixture.outcome(fixture.token()) == "ada")
        #expect(fixture.issuer.requestCount == 2)
        #expect(fixture.lines.entries.count == 1)
        await fixture.close()
    }

    @Test("concurrent tokens share one fetch, also with tokens of unknown keys")
    func shared() async throws {
        let fixture = try TokenFixture()
        fixture.issuer.isHeld = true
        let stranger = TestSigningKey("s")
        let outcomes = await withTaskGroup(of: String.self) { group in
            for number in 0..<50 {
                let token = fixture.token("user-\(number)", key: number % 2 == 0 ? nil : stranger)
                group.addTask { await fixture.outcome(token) }
            }
            #expect(await eventually { fixture.issuer.requestCount > 0 })
            fixture.issuer.isHeld = false
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(outcomes).count == 26 && outcomes.count { $0 == "its key is unknown" } == 25)
        #expect(outcomes.count { $0.hasPrefix("user-") } == 25)
        #expect(fixture.issuer.requestCount == 1)
        await fixture.close()
    }

    @Test("keys are refreshed in the background before they expire")
    func refresh() async throws {
        let fixture = try TokenFixture(maxAge: .seconds(1_000))
        #expect(await fixture.outcome(fixture.token()) == "ada")
        fixture.time.advance(by: 749)
        #expect(await fixture.outcome(fixture.token()) == "ada")
        #expect(fixture.issuer.requestCount == 1)
        fixture.issuer.isHeld = true
        fixture.time.advance(by: 1)
        #expect(await fixture.outcome(fixture.token()) == "ada", "the token does not wait for the fetch")
        #expect(await eventually { fixture.issuer.requestCount == 2 })
        #expect(await fixture.outcome(fixture.token()) == "ada")
        fixture.issuer.isHeld = false
        // This token waits for the fetch, if it has not ended.
        #expect(await fixture.outcome(fixture.token(key: TestSigningKey("s"))) == "its key is unknown")
        fixture.time.advance(by: 500)
        #expect(await fixture.outcome(fixture.token()) == "ada")
        #expect(fixture.issuer.requestCount == 2)
        await fixture.close()
    }

    @Test("in an outage the cached keys are used for 24 hours after their expiry, with a log line at its start and end")
    func outage() async throws {
        let fixture = try TokenFixture(maxAge: .seconds(600))
        let token = fixture.issuer.key.token(fixture.claims())
        #expect(await fixture.outcome(token) == "ada")
        fixture.issuer.isDown = true
        // The keys have expired, and each further hour begins with a failed fetch.
        fixture.time.advance(by: 600)
        for _ in 0..<23 {
            #expect(await fixture.outcome(token) == "ada")
            fixture.time.advance(by: 60 * 60)
        }
        #expect(await fixture.outcome(token) == "ada")
        #expect(fixture.issuer.requestCount == 25)
        #expect(fixture.lines.entries.count == 1)
        let line = fixture.lines.entries.first ?? ""
        #expect(line.hasPrefix("fetching the keys of issuer '\(fixture.issuer.url)' failed: "), "\(line)")
        #expect(line.hasSuffix("; the cached keys stay valid for 1440 minutes"), "\(line)")
        fixture.time.advance(by: 60 * 60)
        #expect(await fixture.outcome(token) == "unavailable, retry after 10.0 seconds")
        // The end of the outage.
        fixture.issuer.isDown = false
        fixture.time.advance(by: 10)
        #expect(await fixture.outcome(token) == "ada")
        #expect(fixture.lines.entries.count == 2)
        #expect(fixture.lines.entries.last == "the keys of issuer '\(fixture.issuer.url)' are fetched again")
        await fixture.close()
    }

    @Test("without cached keys an outage is unavailable, and a fetch follows every ten seconds")
    func outageAtStart() async throws {
        let fixture = try TokenFixture()
        fixture.issuer.isDown = true
        for _ in 0..<100 {
            #expect(await fixture.outcome(fixture.token()) == "unavailable, retry after 10.0 seconds")
        }
        #expect(fixture.issuer.requestCount == 1)
        #expect(fixture.lines.entries.count == 1)
        #expect(fixture.lines.entries[0].hasSuffix("; none are cached, so that its tokens cannot be verified"))
        fixture.time.advance(by: 9)
        #expect(await fixture.outcome(fixture.token()) == "unavailable, retry after 1.0 seconds")
        fixture.time.advance(by: 1)
        #expect(await fixture.outcome(fixture.token()) == "unavailable, retry after 10.0 seconds")
        #expect(fixture.issuer.requestCount == 2)
        fixture.issuer.isDown = false
        fixture.time.advance(by: 10)
        #expect(await fixture.outcome(fixture.token()) == "ada")
        #expect(await fixture.outcome(fixture.token(key: TestSigningKey("s"))) == "its key is unknown")
        await fixture.close()
    }

    @Test("with a stale time of zero, tokens are unavailable as soon as the keys have expired")
    func withoutStaleKeys() async throws {
        let fixture = try TokenFixture(maxAge: .seconds(60)) { $0.staleKeyTime = .zero }
        #expect(await fixture.outcome(fixture.token()) == "ada")
        fixture.issuer.isDown = true
        fixture.time.advance(by: 59)
        #expect(await fixture.outcome(fixture.token()) == "ada")
        #expect(await eventually { fixture.lines.entries.count == 1 })
        fixture.time.advance(by: 1)
        #expect(await fixture.outcome(fixture.token()).hasPrefix("unavailable"))
        await fixture.close()
    }

    @Test(
        "an invalid response is an outage",
        arguments: [
            ("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "responded with status 500"),
            (
                "HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
                "responded with status 302; redirects are not followed"
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "is not a JSON Web Key Set"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"keys\":[]}", "has no key for"),
            ("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: " ", count: 257 << 10), "is larger than 262144 bytes"),
            ("what?\r\n\r\n", ""),
        ])
    func responses(_ response: String, reason: String) async throws {
        let fixture = try TokenFixture()
        fixture.issuer.setResponse(response)
        #expect(await fixture.outcome(fixture.token()) == "unavailable, retry after 10.0 seconds")
        #expect(fixture.issuer.requestCount == 1)
        let line = fixture.lines.entries.first ?? ""
        #expect(line.contains(fixture.issuer.keySetURL) && line.contains(reason), "\(line)")
        await fixture.close()
    }

    @Test(
        "a discovery document names its issuer, and a key set that may be fetched",
        arguments: [
            (#"{"issuer":"U","jwks_uri":"U/keys"}"#, "ada"), (#"{"issuer":"https://e.v","jwks_uri":"U/keys"}"#, nil),
            (#"{"issuer":"U/","jwks_uri":"U/keys"}"#, nil), (#"{"issuer":"U","jwks_uri":"http://e.v/keys"}"#, nil),
            (#"{"issuer":"U","jwks_uri":"file:///etc/passwd"}"#, nil), (#"{"issuer":"U"}"#, nil), ("[]", nil),
        ] as [(String, String?)])
    func discovery(_ document: String, outcome: String?) async throws {
        let issuer = try TestTokenIssuer()
        let path = "/.well-known/other"
        issuer.publish(document.replacing("U", with: issuer.url), at: path)
        let fixture = try TokenFixture(
            issuer, [TokenIssuer(issuer.url, audience: "app", keys: .discoveryURL(issuer.url + path))])
        #expect(await fixture.outcome(fixture.token()) == outcome ?? "unavailable, retry after 10.0 seconds")
        #expect(issuer.requestCount == (outcome == nil ? 1 : 2))
        #expect(fixture.lines.entries.count == (outcome == nil ? 1 : 0))
        await fixture.close()
    }

    @Test("keys without names rotate too")
    func namelessKeys() async throws {
        let fixture = try TokenFixture()
        func publish(_ key: TestSigningKey) {
            fixture.issuer.publish([key.json("").replacing(#""kid":"\#(key.id)","#, with: "")])
        }
        let (first, second) = (TestSigningKey("1"), TestSigningKey("2"))
        publish(first)
        #expect(await fixture.outcome(fixture.token(key: first)) == "ada")
        publish(second)
        #expect(await fixture.outcome(fixture.token(key: second)) == "its key is unknown")
        fixture.time.advance(by: 30)
        let nameless = second.token(fixture.claims("bob"), head: #"{"alg":"ES256"}"#)
        #expect(await fixture.outcome(nameless) == "bob")
        #expect(await fixture.outcome(fixture.token(key: first)) == "its key is unknown")
        #expect(fixture.issuer.requestCount == 2)
        await fixture.close()
    }

    @Test("keys can be fetched at once, whatever the cache has")
    func refreshKeys() async throws {
        let fixture = try TokenFixture()
        #expect(await fixture.issuers.refreshKeys())
        let old = fixture.token()
        #expect(await fixture.outcome(old) == "ada")
        #expect(fixture.issuer.requestCount == 1)
        fixture.issuer.rotate(withdrawingOldKeys: true)
        #expect(await fixture.issuers.refreshKeys())
        #expect(await fixture.outcome(fixture.token("bob")) == "bob")
        #expect(await fixture.outcome(old) == "its key is unknown")
        #expect(fixture.issuer.requestCount == 2)
        fixture.issuer.isDown = true
        #expect(await fixture.issuers.refreshKeys() == false)
        #expect(await fixture.outcome(fixture.token("bob")) == "bob")
        await fixture.close()
    }

    @Test("an issuer that does not respond delays only its own tokens, for at most the time limit")
    func silent() async throws {
        let (silent, other) = (try TestTokenIssuer(), try TestTokenIssuer())
        silent.isHeld = true
        var second = try TokenIssuer(other.url, audience: "app")
        second.principalPrefix = "other:"
        let fixture = try TokenFixture(silent, [TokenIssuer(silent.url, audience: "app"), second])
        async let outcome = fixture.outcome(fixture.token())
        #expect(await eventually { silent.requestCount == 1 })
        #expect(await fixture.outcome(other.key.token(fixture.claims(issuer: other.url))) == "other:ada")
        // The time limit of 4 s passes, because the issuer never responds.
        #expect(await outcome == "unavailable, retry after 10.0 seconds")
        #expect(fixture.lines.entries.count == 1)
        silent.isHeld = false
        await other.close()
        await fixture.close()
    }
}
