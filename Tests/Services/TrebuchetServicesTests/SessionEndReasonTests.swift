import Relays
import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// Connections and clients whose session was ended elsewhere.
@MainActor
@Suite(.timeLimit(.minutes(5)))
struct SessionEndReasonTests {
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
        "a connection with an ended session is not treated as anonymous: it is refused until it signs in again",
        arguments: TestLink.allCases)
    func refused(link: TestLink) async throws {
        try await withServer { server in
            let here = try await server.client(link)
            let grant = try await here.auth.signInAsGuest()
            let there = try await server.client(link, token: grant.accessToken)
            #expect(try await there.caller() == grant.user.id)
            try await here.auth.signOut(grant.refreshToken)
            #expect(try await here.caller() == nil, "a client that signs out is anonymous")
            await there.waitUntilRevoked()
            let error = await #expect(throws: TrebuchetError.self) { try await there.caller() }
            #expect(error?.code == .unauthenticated)
            let guest = try await there.auth.signInAsGuest()
            #expect(guest.user.id != grant.user.id)
            #expect(try await there.caller() == guest.user.id)
            for client in [here, there] { await client.close() }
        }
    }

    private struct Note: Codable, Identifiable, Equatable, Sendable {
        var id: String
    }

    @Test(
        "a write of a user whose session has just ended is neither anonymous nor lost: it is sent after the next sign-in"
    )
    func writes() async throws {
        try await withServer { server in
            let store = MemoryStore()
            CollectionHost.expose(on: server.server, store: store)
            let (here, backend) = (try await server.client(), server.backend())
            let (auth, notes) = SharedStore.$current.withValue(SharedStore()) {
                backend.withCurrent {
                    (Shared(.trebuchetAuth), Shared(.trebuchetCollection(CollectionKey<Note>("notes"))))
                }
            }
            func signIn() async throws -> User {
                try await auth.sendMagicCode(to: "ada@b.c")
                return try await auth.verifyMagicCode(
                    email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
            }
            let ada = try await signIn()
            try await notes.create(Note(id: "1"))
            _ = try await here.auth.sendMagicCode(to: "ada@b.c")
            _ = try await here.auth.verifyMagicCode(
                email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
            // The order of the notifications to the client and to its write queue is not defined.
            notes.create(Note(id: "2"), onError: { _ in })
            _ = try await here.auth.endOtherSessions()
            notes.create(Note(id: "3"), onError: { _ in })
            for await session in auth.updates where session.sessionEnd == .elsewhere { break }
            #expect(try await signIn() == ada)
            try await notes.create(Note(id: "4"))
            for await value in notes.updates where value.items.contains(where: { $0.id == "4" }) && !value.isSyncing {
                break
            }
            let table = try await StoredCollection("notes", in: store).load(
                CollectionLimits(), at: server.server, now: 0)
            #expect(table.documents.values.allSatisfy { $0.creator == ada.id })
            let ids = table.documents.values.map { "\($0.id)" }
            #expect(ids.contains("2") && ids.contains("4"))
            await backend.client.close()
            await here.close()
        }
    }
}
