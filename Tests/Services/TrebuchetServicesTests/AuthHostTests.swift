import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient
@testable import TrebuchetServices
import TrebuchetTesting

/// A user's hosts cannot affect users who sign in from other hosts.
@Suite(.timeLimit(.minutes(5))) struct AuthHostTests {
    private static let owner = "203.0.113.5"
    private static let stranger = "198.51.100.7"

    private func withServer(
        limits: AuthLimits = AuthLimits(), _ body: (AuthServer) async throws -> Void
    ) async throws {
        let server = try await AuthServer(limits: limits)
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func isRateLimited(_ error: AuthError?) -> Bool {
        if case .rateLimited(let wait) = error { wait > 0 } else { false }
    }

    private func outcome(_ body: () async throws -> Void) async -> AuthError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? AuthError
        }
    }

    @Test("a host that has used up the codes for an address does not use up those of the owner's host")
    func codesOfAnAddress() async throws {
        try await withServer { server in
            let stranger = try await server.client(from: Self.stranger)
            for _ in 0..<5 { _ = try await stranger.auth.sendMagicCode(to: "ada@b.c") }
            #expect(isRateLimited(await outcome { _ = try await stranger.auth.sendMagicCode(to: "ada@b.c") }))
            let owner = try await server.client(from: Self.owner)
            _ = try await owner.auth.sendMagicCode(to: "ada@b.c")
            let code = try #require(server.mailbox.code(for: "ada@b.c"))
            #expect(try await owner.auth.verifyMagicCode(email: "ada@b.c", code: code).user.email == "ada@b.c")
            for client in [stranger, owner] { await client.close() }
        }
    }

    @Test("another host cannot void a code, neither by wrong guesses nor by requesting a new one")
    func voidCodes() async throws {
        try await withServer { server in
            let owner = try await server.client(from: Self.owner)
            let stranger = try await server.client(from: Self.stranger)
            _ = try await owner.auth.sendMagicCode(to: "ada@b.c")
            let code = try #require(server.mailbox.code(for: "ada@b.c"))
            let wrong = code == "000000" ? "000001" : "000000"
            for _ in 0..<8 {
                _ = await outcome { _ = try await stranger.auth.verifyMagicCode(email: "ada@b.c", code: wrong) }
            }
            _ = try await stranger.auth.sendMagicCode(to: "ada@b.c")
            #expect(try await owner.auth.verifyMagicCode(email: "ada@b.c", code: code).user.email == "ada@b.c")
            for client in [stranger, owner] { await client.close() }
        }
    }

    @Test("an IPv6 network counts as one host, and another network as another")
    func network() async throws {
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 0.001, burst: 2)
        try await withServer(limits: limits) { server in
            var clients: [TrebuchetClient] = []
            for host in ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"] {
                clients.append(try await server.client(from: host))
            }
            for client in clients[..<2] { _ = try await client.auth.signInAsGuest() }
            #expect(isRateLimited(await outcome { _ = try await clients[2].auth.signInAsGuest() }))
            _ = try await clients[3].auth.signInAsGuest()
            for client in clients { await client.close() }
        }
    }

    @Test("many hosts of an IPv6 /48 network have the rates of four hosts together")
    func largerNetwork() async throws {
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 0.001, burst: 1)
        try await withServer(limits: limits) { server in
            var clients: [TrebuchetClient] = []
            for number in 1...6 { clients.append(try await server.client(from: "2001:db8:1:\(number)::1")) }
            for client in clients[..<4] { _ = try await client.auth.signInAsGuest() }
            for client in clients[4...] {
                #expect(isRateLimited(await outcome { _ = try await client.auth.signInAsGuest() }))
            }
            clients.append(try await server.client(from: "2001:db8:2:1::1"))
            _ = try await clients[6].auth.signInAsGuest()
            for client in clients { await client.close() }
        }
    }

    @Test("a connection inherits no state of an earlier one at the same memory address")
    func inherited() async throws {
        let accounts = try await Accounts(mailer: ClosureMailer { _, _ in })
        var places: Set<ObjectIdentifier> = []
        for number in 0..<9 {
            let connection = CallerConnection(principal: nil, remoteAddress: nil)
            places.insert(ObjectIdentifier(connection))
            for round in 0..<5 { _ = try await accounts.sendMagicCode(to: "a\(number).\(round)@b.c", for: connection) }
        }
        #expect(places.count < 9, "no address was reused: the test shows nothing")
    }

    @Test("a rate table filled by one host does not cause refusals for others")
    func fullTables() async throws {
        var limits = AuthLimits()
        limits.rateEntries = 3
        try await withServer(limits: limits) { server in
            let stranger = try await server.client(from: Self.stranger)
            for number in 0..<5 {
                _ = await outcome { _ = try await stranger.auth.sendMagicCode(to: "eve\(number)@b.c") }
            }
            let owner = try await server.client(from: Self.owner)
            _ = try await owner.auth.sendMagicCode(to: "ada@b.c")
            for client in [stranger, owner] { await client.close() }
        }
    }

    @Test("a host with the maximum number of pending codes affects no other host, and evicts only its own codes")
    func fullCodes() async throws {
        var limits = AuthLimits()
        limits.pendingCodes = 3
        try await withServer(limits: limits) { server in
            let owner = try await server.client(from: Self.owner)
            _ = try await owner.auth.sendMagicCode(to: "ada@b.c")
            let code = try #require(server.mailbox.code(for: "ada@b.c"))
            let stranger = try await server.client(from: Self.stranger)
            for number in 0..<5 {
                _ = await outcome { _ = try await stranger.auth.sendMagicCode(to: "eve\(number)@b.c") }
            }
            let third = try await server.client(from: "192.0.2.9")
            _ = try await third.auth.sendMagicCode(to: "bob@b.c")
            #expect(try await owner.auth.verifyMagicCode(email: "ada@b.c", code: code).user.email == "ada@b.c")
            for client in [stranger, owner, third] { await client.close() }
        }
    }

    @Test("refreshes and sign-outs with made-up tokens are rate limited", arguments: [true, false])
    func renewals(signingOut: Bool) async throws {
        try await withServer { server in
            let client = try await server.client(.local)
            var refused = false
            for _ in 0..<1_001 where !refused {
                let error = await outcome {
                    if signingOut { try await client.auth.signOut("x") } else { _ = try await client.auth.refresh("x") }
                }
                refused = isRateLimited(error)
            }
            #expect(refused)
            await client.close()
        }
    }
}
