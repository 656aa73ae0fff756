import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting
import TrebuchetTokens

// The code of Docs/Guides/Security.md and TestingYourApp.md for tokens whose keys rotate.

func issuerAccess(login: String, partner: String) async throws -> AccessPolicy {
    let login = try TokenIssuer(login, audience: "guestbook")  // keys by OpenID discovery
    var partner = try TokenIssuer(partner, audience: "guestbook", keys: .keySetURL(partner + "/keys"))
    partner.principalPrefix = "partner:"  // its users are not those of `login`
    partner.algorithms = [.es256, .edDSA]
    let issuers = try TokenIssuers([login, partner])
    await issuers.refreshKeys()  // a wrong URL has a log line before the first client connects
    return AccessPolicy(authenticate: AccessPolicy.jsonWebTokens(issuers))
}

@Suite(.timeLimit(.minutes(5))) struct TokenExamples {
    @Test("the users of two issuers are accepted, each under its own name")
    func issuers() async throws {
        let (login, partner) = (try TestTokenIssuer(.rs256), try TestTokenIssuer(.edDSA))
        try await withTestServer(access: try await issuerAccess(login: login.url, partner: partner.url)) { server in
            await server.expose(Guestbook(actorSystem: server.actorSystem), as: "guestbook")
        } body: { test in
            for (issuer, name) in [(login, "ada"), (partner, "partner:ada")] {
                var options = TrebuchetClient.Options()
                options.token = { issuer.token(for: "ada", audience: "guestbook") }
                let guestbook = try await test.connect(options).resolve(Guestbook.self, id: "guestbook")
                _ = try await guestbook.sign("Hello")
                for await entries in await guestbook.observeEntries() {
                    #expect(entries.last == "\(name): Hello")
                    break
                }
            }
        }
        for issuer in [login, partner] { await issuer.close() }
    }

    @Test("the test of the page runs")
    func rotation() async throws {
        let issuer = try TestTokenIssuer()
        let issuers = try TokenIssuers([TokenIssuer(issuer.url, audience: "todos")])
        let token = issuer.token(for: "ada", audience: "todos", roles: ["editor"])
        #expect(try await issuers.verify(token).roles == ["editor"])
        issuer.rotate(withdrawingOldKeys: true)  // signs further tokens with a new key
        await issuers.refreshKeys()
        await #expect(throws: AccessDenied.self) { try await issuers.verify(token) }
        issuer.isDown = true  // the keys in the cache suffice
        #expect(try await issuers.verify(issuer.token(for: "bob", audience: "todos")).id == "bob")
        await issuer.close()
    }
}
