import Relays
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// Attacks by impersonation and by flooding: each is refused with a specific error.
@Suite(.timeLimit(.minutes(5))) struct AuthAbuseTests {
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

    @Test("a code allows five guesses; then even the right one is refused")
    func guessing() async throws {
        try await withServer { server in
            let client = try await server.client()
            _ = try await client.auth.sendMagicCode(to: "ada@b.c")
            let code = try #require(server.mailbox.code(for: "ada@b.c"))
            let wrong = code == "000000" ? "000001" : "000000"
            for left in [4, 3, 2, 1, 0] {
                await #expect(throws: AuthError.wrongCode(triesLeft: left)) {
                    try await client.auth.verifyMagicCode(email: "ada@b.c", code: wrong)
                }
            }
            await #expect(throws: AuthError.noCode) {
                try await client.auth.verifyMagicCode(email: "ada@b.c", code: code)
            }
            #expect(try await client.caller() == nil)
            await client.close()
        }
    }

    @Test("a code is valid for its address only, once, for ten minutes, and until the next one is sent")
    func codes() async throws {
        try await withServer { server in
            let client = try await server.client()
            func verify(_ email: String, _ code: String?) async -> AuthError? {
                do {
                    _ = try await client.auth.verifyMagicCode(email: email, code: try #require(code))
                    return nil
                } catch {
                    return error as? AuthError
                }
            }
            _ = try await client.auth.sendMagicCode(to: "ada@b.c")
            let first = server.mailbox.code(for: "ada@b.c")
            #expect(await verify("eve@b.c", first) == .noCode)
            #expect(await verify("ada@b.c", first) == nil)
            #expect(await verify("ada@b.c", first) == .noCode)
            _ = try await client.auth.sendMagicCode(to: "ada@b.c")
            let second = server.mailbox.code(for: "ada@b.c")
            server.time.advance(by: .seconds(600))
            #expect(await verify("ada@b.c", second) == .noCode)
            await client.close()
        }
    }

    @Test("floods of code requests are refused: per connection, per address and per host")
    func sendFloods() async throws {
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 0.001, burst: 13)
        try await withServer(limits: limits) { server in
            func send(_ client: TrebuchetClient, _ address: String) async -> AuthError? {
                do {
                    _ = try await client.auth.sendMagicCode(to: address)
                    return nil
                } catch {
                    return error as? AuthError
                }
            }
            let first = try await server.client()
            for _ in 0..<5 { #expect(await send(first, "ada@b.c") == nil) }
            #expect(isRateLimited(await send(first, "bob@b.c")), "the limit of this connection")
            let second = try await server.client()
            #expect(isRateLimited(await send(second, "ada@b.c")), "the limit for this address")
            for number in 0..<4 { #expect(await send(second, "bob\(number)@b.c") == nil) }
            let third = try await server.client()
            for number in 0..<4 { #expect(await send(third, "eve\(number)@b.c") == nil) }
            #expect(isRateLimited(await send(third, "carol@b.c")), "the limit of this host")
            #expect(server.mailbox.count == 13)
            for client in [first, second, third] { await client.close() }
        }
    }

    @Test("known and unknown addresses get the same response")
    func oneAnswer() async throws {
        try await withServer { server in
            let client = try await server.client()
            let unknown = try await client.auth.sendMagicCode(to: "ada@b.c")
            _ = try await client.auth.verifyMagicCode(
                email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
            #expect(try await client.auth.sendMagicCode(to: "ada@b.c") == unknown)
            await client.close()
        }
    }

    @Test("addresses with headers, commands or arguments reach no mailer", arguments: MailTests.injections)
    func injection(_ address: String) async throws {
        let server = try await AuthServer()
        let client = try await server.client(.local)
        await #expect(throws: AuthError.invalidAddress) { try await client.auth.sendMagicCode(to: address) }
        await #expect(throws: AuthError.invalidAddress) {
            try await client.auth.verifyMagicCode(email: address, code: "000000")
        }
        #expect(server.mailbox.count == 0)
        await client.close()
        await server.stop()
    }

    @Test("guests, codes and sessions are bounded")
    func bounds() async throws {
        var limits = AuthLimits()
        limits.accounts = 2
        limits.sessionsPerAccount = 2
        try await withServer(limits: limits) { server in
            var clients: [TrebuchetClient] = []
            for _ in 0..<4 { clients.append(try await server.client()) }
            let guest = try await clients[0].auth.signInAsGuest()
            _ = try await clients[1].auth.sendMagicCode(to: "ada@b.c")
            var grants: [SessionGrant] = []
            for client in clients[1...] {
                if server.mailbox.count < 5 { _ = try await client.auth.sendMagicCode(to: "ada@b.c") }
                grants.append(
                    try await client.auth.verifyMagicCode(
                        email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c"))))
            }
            // The oldest of three sessions was ended.
            await clients[1].waitUntilRevoked()
            await #expect(throws: TrebuchetError.self) { try await clients[1].caller() }
            await #expect(throws: AuthError.sessionEnded(.tooMany)) {
                try await clients[1].auth.refresh(grants[0].refreshToken)
            }
            #expect(try await clients[3].caller() == grants[2].user.id)
            // When a guest has left, there is room for a third account.
            await #expect(throws: AuthError.limitReached("accounts")) { try await clients[1].auth.signInAsGuest() }
            try await clients[0].auth.signOut(guest.refreshToken)
            _ = try await clients[1].auth.signInAsGuest()
            for client in clients { await client.close() }
        }
    }

    @Test("guests leave room for users with an address")
    func guestsLeaveRoom() async throws {
        var limits = AuthLimits()
        (limits.accounts, limits.guests) = (4, 2)
        try await withServer(limits: limits) { server in
            var clients: [TrebuchetClient] = []
            for _ in 0..<4 { clients.append(try await server.client()) }
            for client in clients[..<2] { _ = try await client.auth.signInAsGuest() }
            await #expect(throws: AuthError.limitReached("guests")) { try await clients[2].auth.signInAsGuest() }
            func verify(_ client: TrebuchetClient, _ address: String) async throws -> SessionGrant {
                _ = try await client.auth.sendMagicCode(to: address)
                return try await client.auth.verifyMagicCode(
                    email: address, code: try #require(server.mailbox.code(for: address)))
            }
            _ = try await verify(clients[2], "ada@b.c")
            // A guest who becomes a user no longer counts as a guest, nor does one who has left.
            _ = try await verify(clients[0], "bob@b.c")
            let third = try await clients[3].auth.signInAsGuest()
            await #expect(throws: AuthError.limitReached("accounts")) {
                try await server.client().auth.signInAsGuest()
            }
            try await clients[3].auth.signOut(third.refreshToken)
            _ = try await clients[3].auth.signInAsGuest()
            for client in clients { await client.close() }
            // The counts are restored after a restart.
            let again = try await server.accounts.records.deleteExpired(at: server.time.now)
            #expect(again == AccountCount(all: 4, guests: 2))
        }
    }

    @Test(
        "addresses of one mailbox share a rate for codes",
        arguments: [
            ["ada@b.c", "ada+1@b.c", "ADA+2@b.c", "a.d.a@b.c", "ad.a+x.y@b.c"]
        ])
    func oneMailbox(addresses: [String]) async throws {
        try await withServer { server in
            for address in addresses {
                let client = try await server.client(from: "198.51.100.7")
                _ = try await client.auth.sendMagicCode(to: address)
                await client.close()
            }
            let client = try await server.client(from: "198.51.100.7")
            let error = await #expect(throws: AuthError.self) { try await client.auth.sendMagicCode(to: "ada+9@b.c") }
            #expect(isRateLimited(error))
            _ = try await client.auth.sendMagicCode(to: "adas@b.c")
            // For all other purposes they are separate addresses.
            await #expect(throws: AuthError.noCode) {
                try await client.auth.verifyMagicCode(email: "ad+a@b.c", code: "000000")
            }
            await client.close()
        }
    }

    @Test("guests with expired sessions make room for others after an hour, and not before")
    func sweep() async throws {
        var limits = AuthLimits()
        limits.accounts = 1
        limits.sessionLifetime = .seconds(60)
        try await withServer(limits: limits) { server in
            let client = try await server.client()
            _ = try await client.auth.signInAsGuest()
            let other = try await server.client()
            server.time.advance(by: .seconds(60 * 60) - .milliseconds(1))
            await #expect(throws: AuthError.limitReached("accounts")) { try await other.auth.signInAsGuest() }
            server.time.advance(by: .milliseconds(1))
            _ = try await other.auth.signInAsGuest()
            await client.close()
            await other.close()
        }
    }

    @Test("the numbers of concurrent and of waiting mail deliveries are limited")
    func mailsInFlight() async throws {
        var limits = AuthLimits()
        (limits.mailsInFlight, limits.waitingMails) = (1, 0)
        try await withServer(limits: limits) { server in
            let client = try await server.client()
            server.part.update(.paused)
            let outcomes = await withTaskGroup(of: AuthError?.self) { group in
                for address in ["ada@b.c", "bob@b.c"] {
                    group.addTask {
                        do {
                            _ = try await client.auth.sendMagicCode(to: address)
                            return nil
                        } catch {
                            return error as? AuthError
                        }
                    }
                }
                var outcomes: [AuthError?] = []
                for await outcome in group {
                    outcomes.append(outcome)
                    server.part.update(.working)
                }
                return outcomes
            }
            #expect(outcomes == [.limitReached("waitingMails"), nil])
            await client.close()
        }
    }

    @Test("a host that creates guests without end is refused")
    func guestFlood() async throws {
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 0.001, burst: 3)
        try await withServer(limits: limits) { server in
            let client = try await server.client()
            for _ in 0..<3 { _ = try await client.auth.signInAsGuest() }
            let error = await #expect(throws: AuthError.self) { try await client.auth.signInAsGuest() }
            #expect(isRateLimited(error))
            #expect(try await server.store.names("account/").count == 1, "a guest who signs in again keeps the account")
            #expect(try await server.store.names("session/").count == 1)
            await client.close()
        }
    }

    @Test("made-up tokens end no session, and forged access tokens are refused")
    func forgery() async throws {
        try await withServer { server in
            let client = try await server.client()
            let grant = try await client.auth.signInAsGuest()
            let thief = try await server.client()
            // The access token contains the session's name, which gives no access to the session.
            for token in ["", "x", RefreshToken.random().text, grant.accessToken] {
                await #expect(throws: AuthError.sessionEnded()) { try await thief.auth.refresh(token) }
                await #expect(throws: AuthError.sessionEnded()) { try await thief.auth.signOut(token) }
            }
            #expect(try await client.caller() == grant.user.id)
            var parts = grant.accessToken.split(separator: ".").map(String.init)
            parts[0] = "eyJhbGciOiJub25lIn0"
            for token in [parts.joined(separator: "."), "\(parts[0]).\(parts[1]).", grant.accessToken + "A", "x"] {
                await #expect(throws: TransportError.self) { try await server.client(token: token) }
            }
            for client in [client, thief] { await client.close() }
        }
    }

    @Test("a failing store has a specific error, and never looks like a missing account")
    func storeFails() async throws {
        try await withServer { server in
            let client = try await server.client()
            let grant = try await client.auth.signInAsGuest()
            server.part.update(.broken)
            await #expect(throws: AuthError.unavailable) { try await client.auth.refresh(grant.refreshToken) }
            await #expect(throws: AuthError.unavailable) { try await client.auth.signOut(grant.refreshToken) }
            await #expect(throws: TransportError.self) { try await server.client(token: grant.accessToken) }
            server.part.update(.working)
            _ = try await client.auth.refresh(grant.refreshToken)
            try await server.store.memory.put(Array("{".utf8), StateKey("auth", "account/" + grant.user.id))
            await #expect(throws: AuthError.unavailable) { try await client.auth.refresh(grant.refreshToken) }
            await client.close()
        }
    }

    @Test("a server without the accounts' access policy refuses sign-ins")
    func withoutPolicy() async throws {
        let accounts = try await Accounts(mailer: ClosureMailer { _, _ in })
        let _: Void = try await withTestServer { server in
            await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        } body: { client, _ in
            await #expect(throws: AuthError.withoutAccessPolicy) { try await client.auth.signInAsGuest() }
        }
    }

    @Test("an unsent mail is an error, and its code is invalid")
    func mailFails() async throws {
        try await withServer { server in
            let client = try await server.client()
            server.part.update(.broken)
            await #expect(throws: AuthError.mailNotSent) { try await client.auth.sendMagicCode(to: "ada@b.c") }
            server.part.update(.working)
            await #expect(throws: AuthError.noCode) {
                try await client.auth.verifyMagicCode(email: "ada@b.c", code: "000000")
            }
            await client.close()
        }
    }

    @Test(
        "a code of a wrong form is no guess, and costs no try",
        arguments: ["", "12345", "1234567", "abcdef", "12 34 5", "１２３４５", String(repeating: "1", count: 100)])
    func malformedCode(text: String) async throws {
        let mailbox = Journal()
        let accounts = try await Accounts(
            store: MemoryStore(), mailer: ClosureMailer { code, _ in mailbox.record(code) }, now: { 1_800_000_000_000 })
        let connection = CallerConnection(principal: nil, remoteAddress: nil)
        await #expect(throws: AuthError.noCode) {
            try await accounts.verifyMagicCode(email: "ada@b.c", code: text, on: connection)
        }
        _ = try await accounts.sendMagicCode(to: "ada@b.c", for: connection)
        for _ in 0..<6 {
            await #expect(throws: AuthError.wrongCode(triesLeft: 5)) {
                try await accounts.verifyMagicCode(email: "ada@b.c", code: text, on: connection)
            }
        }
        let code = try #require(mailbox.entries.first)
        _ = try await accounts.verifyMagicCode(
            email: "ada@b.c", code: " \(code.prefix(3)) \(code.suffix(3))\n", on: connection)
    }

    @Test("a call that ends a session returns when the session's connections begin no more calls")
    func endApplies() async throws {
        let accounts = try await Accounts(
            store: MemoryStore(), mailer: ClosureMailer { _, _ in }, now: { 1_800_000_000_000 })
        let (own, other) = (
            CallerConnection(principal: nil, remoteAddress: nil), CallerConnection(principal: nil, remoteAddress: nil)
        )
        let applied = Mutex<[Bool]>([])
        own.onAuthorizationChange({}, applied: { applied.withLock { $0.append(own.isRevoked) } })
        let grant = try await accounts.signInAsGuest(on: own)
        #expect(applied.withLock { $0 } == [])
        try await accounts.signOut(grant.refreshToken, on: other)
        #expect(applied.withLock { $0 } == [true])
    }

    @Test(
        "an address with a line end is refused, and takes nothing from a rate",
        arguments: ["\n", "\r\n", "\r", "\u{2028}"])
    func addressWithLineEnd(end: String) async throws {
        let accounts = try await Accounts(
            store: MemoryStore(), mailer: ClosureMailer { _, _ in }, now: { 1_800_000_000_000 })
        let connection = CallerConnection(principal: nil, remoteAddress: nil)
        for text in ["ada@b.c" + end, end + "ada@b.c", "ada@b.c" + end + "Bcc: eve@b.c"] {
            await #expect(throws: AuthError.invalidAddress) {
                try await accounts.sendMagicCode(to: text, for: connection)
            }
        }
        for _ in 0..<5 { _ = try await accounts.sendMagicCode(to: "ada@b.c", for: connection) }
    }
}
