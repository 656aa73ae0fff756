import Networking
import Relays
import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// What becomes of connections and clients whose session has ended elsewhere.
@MainActor
@Suite(.timeLimit(.minutes(1)))
struct SessionEndTests {
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

    @Test(
        "a connection whose session has ended does nothing as nobody: it is refused until it signs in again",
        arguments: TestLink.allCases)
    func refused(link: TestLink) async throws {
        try await withServer { server in
            let here = try await server.client(link)
            let grant = try await here.auth.signInAsGuest()
            let there = try await server.client(link, token: grant.accessToken)
            #expect(try await there.caller() == grant.user.id)
            try await here.auth.signOut(grant.refreshToken)
            #expect(try await here.caller() == nil, "who signs out goes on as nobody")
            let error = await #expect(throws: TrebuchetError.self) { try await there.caller() }
            #expect(error?.code == .unauthenticated)
            let guest = try await there.auth.signInAsGuest()
            #expect(guest.user.id != grant.user.id)
            #expect(try await there.caller() == guest.user.id)
            for client in [here, there] { await client.close() }
        }
    }
}
