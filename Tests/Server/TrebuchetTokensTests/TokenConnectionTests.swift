import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting
import TrebuchetTokens

/// Returns the identity of its caller.
@Trebuchet
distributed actor TokenCallerReporter {
    distributed func principal() -> [String] {
        guard let principal = Caller.current?.principal else { return [] }
        return [principal.id] + principal.roles.sorted() + [principal.claims["iss"] ?? "-"]
    }
}

/// Clients that connect with tokens of an issuer.
@Suite(.timeLimit(.minutes(5))) struct TokenConnectionTests {
    /// Runs a test with a server, on one reactor, that accepts the tokens of some issuers.
    private func withServer(
        _ issuers: TestTokenIssuer..., body: (TrebuchetServer, TokenIssuers) async throws -> Void
    ) async throws {
        let accepted = try TokenIssuers(
            issuers.enumerated().map { index, issuer in
                var settings = try TokenIssuer(issuer.url, audience: "app")
                if index > 0 { settings.principalPrefix = "\(index):" }
                return settings
            }, log: nil)
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 1,
            access: AccessPolicy(authenticate: AccessPolicy.jsonWebTokens(accepted)))
        await server.expose(TokenCallerReporter(actorSystem: server.actorSystem), as: "reporter")
        try await server.start()
        do {
            try await body(server, accepted)
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
        for issuer in issuers { await issuer.close() }
    }

    private func connect(_ server: TrebuchetServer, token: String) async throws -> TrebuchetClient {
        let address = try #require(server.address)
        var options = TrebuchetClient.Options()
        options.token = { token }
        options.reconnect = .never
        let client = TrebuchetClient(
            transport: .webSocket(host: address.host, port: address.port), options: options)
        do {
            try await client.connect()
        } catch {
            await client.close()
            throw error
        }
        return client
    }

    /// The status with which a client is refused, and the whole text.
    private func refusal(_ server: TrebuchetServer, token: String) async -> (status: Int?, text: String) {
        do {
            let client = try await connect(server, token: token)
            await client.close()
            return (nil, "")
        } catch {
            let status = (error as? TransportError)?.cause as? UnexpectedHTTPStatus
            return (status?.status, "\(error)")
        }
    }

    @Test("the token of a client identifies its calls, also after a rotation", arguments: [false, true])
    func principal(withdrawing: Bool) async throws {
        let issuer = try TestTokenIssuer(.edDSA)
        try await withServer(issuer) { server, issuers in
            for subject in ["ada", "bob"] {
                let token = issuer.token(for: subject, audience: "app", roles: ["editor"])
                let client = try await connect(server, token: token)
                let reporter = try client.resolve(TokenCallerReporter.self, id: "reporter")
                #expect(try await reporter.principal() == [subject, "editor", issuer.url])
                await client.close()
                issuer.rotate(withdrawingOldKeys: withdrawing)
                await issuers.refreshKeys()
                #expect(await refusal(server, token: token).status == (withdrawing ? 401 : nil))
            }
        }
    }

    @Test("an invalid token is answered 401, and a token whose keys are unavailable 503")
    func refusals() async throws {
        let issuer = try TestTokenIssuer()
        issuer.isDown = true
        try await withServer(issuer) { server, issuers in
            let token = issuer.token(for: "ada", audience: "app")
            var answer = await refusal(server, token: token)
            #expect(answer.status == 503 && answer.text.contains("cannot be fetched"), "\(answer)")
            // It needs no key.
            answer = await refusal(server, token: issuer.token(for: "ada", audience: "other"))
            #expect(answer.status == 401 && answer.text.contains("its audience is wrong"), "\(answer)")
            issuer.isDown = false
            await issuers.refreshKeys()
            #expect(await refusal(server, token: token).status == nil)
            let stranger = TestSigningKey("s").token(
                #"{"iss":"\#(issuer.url)","sub":"eve","aud":"app","exp":4000000000}"#)
            answer = await refusal(server, token: stranger)
            #expect(answer.status == 401 && answer.text.contains("its key is unknown"), "\(answer)")
            answer = await refusal(server, token: "")
            #expect(answer.status == 401 && answer.text.contains("a bearer token is required"), "\(answer)")
        }
    }

    @Test("while an issuer does not respond, clients with tokens of another one connect and call")
    func slowIssuer() async throws {
        let (issuer, slow) = (try TestTokenIssuer(), try TestTokenIssuer())
        slow.isHeld = true
        try await withServer(issuer, slow) { server, _ in
            async let waiting = connect(server, token: slow.token(for: "bob", audience: "app"))
            #expect(await eventually { slow.requestCount == 1 })
            let client = try await connect(server, token: issuer.token(for: "ada", audience: "app"))
            let reporter = try client.resolve(TokenCallerReporter.self, id: "reporter")
            #expect(try await reporter.principal().first == "ada")
            slow.isHeld = false
            let other = try await waiting
            let slowReporter = try other.resolve(TokenCallerReporter.self, id: "reporter")
            #expect(try await slowReporter.principal().first == "1:bob")
            for client in [client, other] { await client.close() }
        }
    }
}
