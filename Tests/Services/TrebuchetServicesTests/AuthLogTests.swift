import Synchronization
import TestSupport
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient
@testable import TrebuchetServices

/// The log lines for a server's operator.
@Suite(.timeLimit(.minutes(5))) struct AuthLogTests {
    @Test("refusals, ended sessions and failures are logged with user and reason, and without codes and tokens")
    func lines() async throws {
        let server = try await AuthServer()
        let client = try await server.client(from: "198.51.100.7")
        _ = try await client.auth.sendMagicCode(to: "ada@b.c")
        let code = try #require(server.mailbox.code(for: "ada@b.c"))
        let wrong = code == "000000" ? "000001" : "000000"
        await #expect(throws: AuthError.self) { try await client.auth.verifyMagicCode(email: "ada@b.c", code: wrong) }
        let grant = try await client.auth.verifyMagicCode(email: "ada@b.c", code: code)
        try await client.auth.signOut(grant.refreshToken)
        server.part.update(.broken)
        await #expect(throws: AuthError.unavailable) { try await client.auth.refresh(grant.refreshToken) }
        await #expect(throws: AuthError.mailNotSent) { try await client.auth.sendMagicCode(to: "ada@b.c") }
        server.part.update(.working)
        let lines = server.lines.entries
        #expect(lines.contains { $0.hasPrefix("refused 198.51.100.7 to sign in as ada@b.c: wrong code") })
        #expect(lines.contains { $0.contains("of \(grant.user.id) has ended: its client has signed out") })
        #expect(lines.contains { $0.hasPrefix("the account store failed") })
        #expect(lines.contains { $0.hasPrefix("a magic code was not sent") })
        for secret in [code, wrong, grant.refreshToken, grant.accessToken] {
            #expect(!lines.contains { $0.contains(secret) })
        }
        await client.close()
        await server.stop()
    }

    @Test("the log names the party that deleted an account: its user or an operator", arguments: [false, true])
    func deletions(byOperator: Bool) async throws {
        let server = try await AuthServer()
        let client = try await server.client()
        let account = try await client.auth.signInAsGuest().user.id
        if byOperator {
            #expect(try await server.accounts.removeAccount(account))
        } else {
            try await client.auth.deleteAccount(code: nil)
        }
        let actor = byOperator ? "an operator" : "its user"
        let lines = server.lines.entries
        #expect(lines.contains("account \(account) was deleted by \(actor)"), "\(lines)")
        await client.close()
        await server.stop()
    }

    @Test("a user cannot forge log lines")
    func injection() {
        let lines = Journal()
        let log = AuthLog(ConsoleLog { lines.record($0) })
        let connection = CallerConnection(principal: Principal(id: "a\nb"), remoteAddress: nil)
        log.refused("to sign in with a token of 'x\nsession of root\u{1B}[2J'", to: connection, .noCode)
        log.mailFailed("the relay said \r\n550")
        #expect(lines.entries.count == 2)
        #expect(lines.entries.allSatisfy { LogLine.of($0) == $0 }, "\(lines.entries)")
    }

    @Test("each kind of line is logged at most once a second, and does not suppress other kinds")
    func bounded() {
        let lines = Journal()
        let log = AuthLog(ConsoleLog { lines.record($0) })
        let connection = CallerConnection(principal: Principal(id: "ada"), remoteAddress: nil)
        for _ in 0..<100_000 { log.refused("to sign in", to: connection, .noCode) }
        let refusals = lines.entries.count
        #expect((1...5).contains(refusals), "one line for each second")
        log.storeFailed("the disk is full")
        log.ended("s", of: "ada", "it expired")
        log.mailFailed("no relay")
        log.providerFailed("no keys")
        #expect(lines.entries.count == refusals + 4)
        #expect(lines.entries[0].hasPrefix("refused a client in this process (ada) to sign in: "))
    }
}
