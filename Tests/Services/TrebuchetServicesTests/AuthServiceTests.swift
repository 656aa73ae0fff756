import Networking
import Relays
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@MainActor
@Suite(.timeLimit(.minutes(5)))
struct AuthServiceTests {
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

    /// The session in a separate process of an app.
    private func auth(_ backend: TrebuchetBackend) -> Shared<AuthSession> {
        SharedStore.$current.withValue(SharedStore()) { backend.withCurrent { Shared(.instantAuth) } }
    }

    private func wait(_ auth: Shared<AuthSession>, until condition: (AuthState) -> Bool) async {
        for await session in auth.updates where condition(session.state) { return }
    }

    @Test(
        "signing in makes the live connection the user's, and signing out makes it anonymous",
        arguments: TestLink.allCases)
    func liveConnection(link: TestLink) async throws {
        try await withServer { server in
            let backend = server.backend(link)
            let auth = auth(backend)
            #expect(auth.wrappedValue.state == .unauthenticated)
            let guest = try await auth.signInAsGuest()
            #expect(try await backend.client.caller() == guest.id)
            #expect(try await backend.client.resolve(ServiceCallerReporter.self, id: "mirror").roles() == ["guest"])
            #expect(try await auth.signInAsGuest() == guest, "a guest stays the same user")
            #expect(await server.server.connectionCount == 1)
            try await auth.signOut()
            #expect(auth.wrappedValue.state == .unauthenticated)
            #expect(try await backend.client.caller() == nil)
            #expect(try await server.store.names("") == ["secret"], "no data of the guest remains")
            await backend.client.close()
        }
    }

    @Test(
        "a guest who verifies a code keeps the id, and can sign in again by the address", arguments: TestLink.allCases)
    func upgrade(link: TestLink) async throws {
        try await withServer { server in
            let backend = server.backend(link)
            let auth = auth(backend)
            let guest = try await auth.signInAsGuest()
            #expect(try await auth.sendMagicCode(to: "Ada@B.c").validSeconds == 600)
            let code = try #require(server.mailbox.code(for: "ada@b.c"))
            #expect(code.count == 6 && code.allSatisfy { "0"..."9" ~= $0 })
            let user = try await auth.verifyMagicCode(email: "ada@B.C", code: code)
            #expect(user == User(id: guest.id, email: "ada@b.c"))
            #expect(auth.wrappedValue.state == .authenticated(user))
            #expect(try await backend.client.resolve(ServiceCallerReporter.self, id: "mirror").roles() == ["user"])

            // A guest in another process becomes that user, and is discarded.
            let other = server.backend(link)
            let second = self.auth(other)
            let stranger = try await second.signInAsGuest()
            try await second.sendMagicCode(to: "ada@b.c")
            let next = try #require(server.mailbox.code(for: "ada@b.c"))
            #expect(try await second.verifyMagicCode(email: "ada@b.c", code: next) == user)
            #expect(try await other.client.caller() == user.id)
            let accounts = try await server.store.names("account/")
            #expect(accounts == [user.id] && stranger.id != user.id)
            #expect(try await server.store.names("session/").count == 2)
            for client in [backend.client, other.client] { await client.close() }
        }
    }

    @Test("a restarted client process has its user again, from its first call on")
    func restart() async throws {
        try await withServer { server in
            let folder = try TemporaryFolder()
            let file = FileCredentialStore(path: folder.path + "/credential")
            let first = server.backend(credentials: file)
            let guest = try await auth(first).signInAsGuest()
            await first.client.close()

            let second = server.backend(credentials: file)
            second.client.connectIfNeeded()
            #expect(try await second.client.caller() == guest.id)
            await second.client.close()

            let third = server.backend(credentials: file)
            let auth = auth(third)
            // The stored credentials may have been read by now.
            #expect([.loading, .guest(guest)].contains(auth.wrappedValue.state))
            await wait(auth) { $0 == .guest(guest) }
            #expect(try await third.client.caller() == guest.id)
            await third.client.close()
        }
    }

    @Test("a client that starts without its server shows its user, and is signed in when the server is available")
    func offline() async throws {
        try await withServer { server in
            let credentials = InMemoryCredentialStore()
            let first = server.backend(credentials: credentials)
            let guest = try await auth(first).signInAsGuest()
            await first.client.close()
            await server.stop()

            let second = server.backend(credentials: credentials)
            let auth = auth(second)
            // The stored credentials may have been read by now.
            #expect([.loading, .guest(guest)].contains(auth.wrappedValue.state))
            await wait(auth) { $0 == .guest(guest) }
            #expect(credentials.load() != nil)
            let back = try await server.restarted()
            #expect(try await second.client.caller() == guest.id)
            #expect(auth.wrappedValue.state == .guest(guest))
            await second.client.close()
            await back.stop()
        }
    }

    @Test(
        "a session unknown to the server is discarded, and the client is anonymous",
        arguments: TestLink.allCases)
    func rejected(link: TestLink) async throws {
        try await withServer { server async throws in
            let unknown = Credential(refreshToken: RefreshToken.random().text, user: User(id: "1", email: "ada@b.c"))
            let credentials = InMemoryCredentialStore(unknown)
            let backend = server.backend(link, credentials: credentials)
            let auth = auth(backend)
            await wait(auth) { $0 == .unauthenticated }
            #expect(auth.wrappedValue.sessionEnd == .unknown)
            #expect(try await backend.client.caller() == nil)
            #expect(credentials.load() == nil)
            await backend.client.close()
        }
    }

    @Test("signing out ends the session's other connections, and notifies their clients immediately")
    func signOutElsewhere() async throws {
        try await withServer { server in
            let credentials = InMemoryCredentialStore()
            let here = server.backend(credentials: credentials)
            let authHere = auth(here)
            let user = try await authHere.signInAsGuest()
            let alarm = Alarm()
            let there = server.backend(credentials: credentials, alarm: alarm)
            let authThere = auth(there)
            await wait(authThere) { $0.isSignedIn }
            #expect(try await there.client.caller() == user.id)
            #expect(server.accounts.connections.count == 2)

            try await authHere.signOut()
            // The client does not wait for the alarm of its next refresh.
            await wait(authThere) { $0 == .unauthenticated }
            #expect(authThere.wrappedValue.sessionEnd == .elsewhere)
            await there.client.waitUntilRevoked()
            await #expect(throws: TrebuchetError.self) { try await there.client.caller() }
            let guest = try await authThere.signInAsGuest()
            #expect(authThere.wrappedValue.state == .guest(guest) && authThere.wrappedValue.sessionEnd == nil)
            #expect(try await there.client.caller() == guest.id)
            for client in [here.client, there.client] { await client.close() }
            #expect(await eventually { server.accounts.connections.count == 0 })
        }
    }

    @Test("each refresh token is valid once; the previous one may be repeated; an older one ends the session")
    func rotation() async throws {
        try await withServer { server in
            let client = try await server.client()
            let first = try await client.auth.signInAsGuest()
            let second = try await client.auth.refresh(first.refreshToken)
            #expect(second.user == first.user)
            #expect(second.refreshToken != first.refreshToken)
            // The response may have been lost.
            #expect(try await client.auth.refresh(first.refreshToken).refreshToken == second.refreshToken)
            let third = try await client.auth.refresh(second.refreshToken)
            #expect(try await client.caller() == first.user.id)

            let thief = try await server.client()
            await #expect(throws: AuthError.sessionEnded(.tokenReused)) {
                try await thief.auth.refresh(first.refreshToken)
            }
            await #expect(throws: AuthError.sessionEnded(.tokenReused)) {
                try await client.auth.refresh(third.refreshToken)
            }
            await client.waitUntilRevoked()
            await #expect(throws: TrebuchetError.self) { try await client.caller() }
            #expect(try await thief.caller() == nil)
            await #expect(throws: TransportError.self) { try await server.client(token: third.accessToken) }
            for client in [client, thief] { await client.close() }
        }
    }

    @Test("a repeated token is refused after 30 seconds, and so is a session that was not refreshed for 60 days")
    func expiry() async throws {
        try await withServer { server in
            let client = try await server.client()
            let first = try await client.auth.signInAsGuest()
            _ = try await client.auth.refresh(first.refreshToken)
            server.time.advance(by: .seconds(30))
            await #expect(throws: AuthError.sessionEnded(.tokenReused)) {
                try await client.auth.refresh(first.refreshToken)
            }

            let again = try await client.auth.signInAsGuest()
            server.time.advance(by: .seconds(60 * 24 * 60 * 60))
            await #expect(throws: AuthError.sessionEnded(.expired)) {
                try await client.auth.refresh(again.refreshToken)
            }
            #expect(try await server.store.names("") == ["secret"])
            await client.close()
        }
    }

    @Test(
        "an access token is valid for 15 minutes, unless the session has ended",
        arguments: TestLink.allCases)
    func accessToken(link: TestLink) async throws {
        try await withServer { server in
            let client = try await server.client(link)
            let grant = try await client.auth.signInAsGuest()
            #expect(grant.accessSeconds == 15 * 60)
            server.time.advance(by: .seconds(15 * 60 - 1))
            let second = try await server.client(link, token: grant.accessToken)
            #expect(try await second.caller() == grant.user.id)
            server.time.advance(by: .seconds(1))
            await #expect(throws: TransportError.self) { try await server.client(link, token: grant.accessToken) }
            // Existing connections continue.
            #expect(try await second.caller() == grant.user.id)

            let renewed = try await client.auth.refresh(grant.refreshToken)
            let third = try await server.client(link, token: renewed.accessToken)
            try await client.auth.signOut(renewed.refreshToken)
            #expect(try await client.caller() == nil)
            for client in [second, third] {
                await client.waitUntilRevoked()
                await #expect(throws: TrebuchetError.self) { try await client.caller() }
            }
            await #expect(throws: TransportError.self) { try await server.client(link, token: renewed.accessToken) }
            for client in [client, second, third] { await client.close() }
        }
    }

    @Test("a client with an expired access token reconnects as its user after a restart of its server")
    func serverRestart() async throws {
        try await withServer { server in
            let backend = server.backend()
            let user = try await auth(backend).signInAsGuest()
            server.time.advance(by: .seconds(60 * 60))
            let back = try await server.restarted()
            #expect(try await backend.client.caller() == user.id)
            await backend.client.close()
            await back.stop()
        }
    }

    @Test("a session is refreshed after four fifths of its access token's lifetime, and again after a failure")
    func renewal() async throws {
        try await withServer { server in
            let alarm = Alarm()
            let credentials = InMemoryCredentialStore()
            let backend = server.backend(credentials: credentials, alarm: alarm)
            let user = try await auth(backend).signInAsGuest()
            let before = try #require(credentials.load())
            await alarm.asked.wait(for: "\(Duration.seconds(720))")
            server.part.update(.broken)
            alarm.ring()
            await alarm.asked.wait(for: "\(Duration.seconds(30))")
            #expect(credentials.load() == before)
            server.part.update(.working)
            alarm.ring()
            await alarm.asked.wait { $0.count == 3 }
            #expect(alarm.asked.entries == [720, 30, 720].map { "\(Duration.seconds($0))" })
            #expect(credentials.load() != before)
            #expect(try await backend.client.caller() == user.id)
            await backend.client.close()
        }
    }

    @Test("a custom client can sign in as well, and is signed in again after a reconnection")
    func ownClient() async throws {
        try await withServer { server in
            var options = TrebuchetClient.Options()
            options.reconnect.maximumDelay = .milliseconds(20)
            let backend = TrebuchetBackend(client: TrebuchetClient(transport: server.transport(), options: options))
            let user = try await auth(backend).signInAsGuest()
            let back = try await server.restarted()
            #expect(try await eventually { try await backend.client.caller() == user.id })
            await backend.client.close()
            await back.stop()
        }
    }

    @Test("a restarted server has its accounts, except those without a means to sign in")
    func accountsStay() async throws {
        let time = VirtualTime()
        let server = try await AuthServer(time: time)
        let client = try await server.client()
        let guest = try await client.auth.signInAsGuest()
        _ = try await client.auth.sendMagicCode(to: "ada@b.c")
        let user = try await client.auth.verifyMagicCode(
            email: "ada@b.c", code: try #require(server.mailbox.code(for: "ada@b.c")))
        #expect(user.user.id == guest.user.id)
        let other = try await server.client()
        _ = try await other.auth.signInAsGuest()
        time.advance(by: .seconds(61 * 24 * 60 * 60))
        for client in [client, other] { await client.close() }
        let back = try await server.restarted()
        #expect(try await back.store.names("account/") == [user.user.id])
        #expect(try await back.store.names("session/").isEmpty)
        await back.stop()
    }

    @Test("the connection's state goes from none to the user's and back")
    func connection() async throws {
        try await withServer { server in
            let backend = server.backend()
            let store = SharedStore()
            let connection = SharedStore.$current.withValue(store) {
                backend.withCurrent { SharedReader(.instantConnection) }
            }
            for await state in connection.updates where state == .connected { break }
            let user = try await auth(backend).signInAsGuest()
            for await state in connection.updates where state == .authenticated(user) { break }
            await server.stop()
            for await case .error(let error) in connection.updates {
                #expect(error.isRetrying)
                break
            }
            let back = try await server.restarted()
            for await state in connection.updates where state == .authenticated(user) { break }
            await backend.client.close()
            for await state in connection.updates where state == .disconnected { break }
            await back.stop()
        }
    }

    @Test(
        "a connection's state is derived from those of client and session",
        arguments: [
            (
                TrebuchetClient.ConnectionState.disconnected(nil), AuthState.unauthenticated,
                BackendConnection.disconnected
            ),
            (.closed, .guest(User(id: "1")), .disconnected),
            (.connecting(attempt: 1, after: nil), .loading, .connecting),
            (.connected, .loading, .connected), (.connected, .unauthenticated, .connected),
            (.connected, .guest(User(id: "1")), .authenticated(User(id: "1"))),
            (.draining, .guest(User(id: "1")), .authenticated(User(id: "1"))),
            (
                .connecting(attempt: 2, after: TransportError(.refused, "no")), .guest(User(id: "1")),
                .error(.init(TransportError(.refused, "no"), isRetrying: true))
            ),
            (
                .disconnected(TransportError(.tls, "no")), .unauthenticated,
                .error(.init(TransportError(.tls, "no"), isRetrying: false))
            ),
        ])
    func connectionTable(
        _ connection: TrebuchetClient.ConnectionState, _ auth: AuthState, _ expected: BackendConnection
    ) {
        #expect(BackendConnection(connection, auth) == expected)
    }
}
