import Foundation
import Platform
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// The attribution of writes, at a server with accounts.
@MainActor @Suite(.timeLimit(.minutes(5))) struct CollectionAccountTests {
    private struct Fixture {
        let auth: AuthServer
        /// A separate store for documents, which can be made to wait.
        let part: StateRelay<PartState>
        let store: TestStore
        let folder: TemporaryFolder

        /// An app that persists pending writes in the test's folder.
        func app(
            _ credentials: InMemoryCredentialStore = InMemoryCredentialStore(), online: Bool = true,
            over link: FaultyLink? = nil
        ) -> App {
            var options = TrebuchetBackend.options
            options.reconnect.maximumDelay = .milliseconds(20)
            // No process listens at the discard port.
            var transport = online ? auth.transport() : .webSocket(host: "127.0.0.1", port: 9)
            if let link { transport = .webSocket(host: link.address.host, port: link.address.port) }
            let backend = TrebuchetBackend(transport: transport, credentials: credentials, options: options)
            backend.persistPendingWrites(in: URL(fileURLWithPath: folder.path))
            return App(backend: backend)
        }

        /// The creators of the documents.
        func creators() async throws -> [String: String?] {
            let table = try await StoredCollection("todos", in: store).load(CollectionLimits(), at: auth.server, now: 0)
            return Dictionary(uniqueKeysWithValues: table.documents.values.map { ("\($0.id)", $0.creator) })
        }
    }

    private struct App {
        let backend: TrebuchetBackend
        let store = SharedStore()

        var todos: Shared<SyncedCollection<Todo>> {
            backend.withCurrent { Shared(.trebuchetCollection(Schema.todos), store: store) }
        }
        @MainActor var auth: Shared<AuthSession> { backend.withCurrent { Shared(.trebuchetAuth, store: store) } }
    }

    private func withFixture(_ body: (Fixture) async throws -> Void) async throws {
        let part = StateRelay<PartState>(.working)
        let fixture = Fixture(
            auth: try await AuthServer(), part: part, store: TestStore(memory: MemoryStore(), part: part),
            folder: try TemporaryFolder())
        CollectionHost.expose(on: fixture.auth.server, store: fixture.store)
        do {
            try await body(fixture)
        } catch {
            await fixture.auth.stop()
            throw error
        }
        await fixture.auth.stop()
    }

    /// The credential of a new guest.
    private func guest(_ fixture: Fixture) async throws -> InMemoryCredentialStore {
        let credentials = InMemoryCredentialStore()
        let backend = fixture.auth.backend(credentials: credentials)
        try await backend.withCurrent { Shared(.trebuchetAuth, store: SharedStore()) }.signInAsGuest()
        await backend.client.close()
        return credentials
    }

    private func signIn(_ app: App, _ fixture: Fixture, _ address: String) async throws -> User {
        let auth = app.auth
        try await auth.sendMagicCode(to: address)
        return try await auth.verifyMagicCode(email: address, code: fixture.auth.mailbox.code(for: address) ?? "")
    }

    @Test("a user's offline writes wait for that user, and are neither shown to the next one nor sent by them")
    func belongsToItsAccount() async throws {
        try await withFixture { fixture in
            let (ada, bob) = (try await guest(fixture), try await guest(fixture))
            let first = fixture.app(ada, online: false)
            let wrote = first.todos
            wrote.create(Todo(id: "ada's"), onError: nil)
            #expect(wrote.wrappedValue.items.ids == ["ada's"])
            await first.backend.close()

            let second = fixture.app(bob)
            let other = second.todos
            #expect(other.wrappedValue.items.isEmpty, "Ada's documents are not shown to Bob")
            try await other.create(Todo(id: "bob's"))
            #expect(other.wrappedValue.items.ids == ["bob's"])
            #expect(try await fixture.creators() == ["bob's": bob.load()?.user.id])
            await second.backend.close()

            let third = fixture.app(ada)
            let again = third.todos
            #expect(again.wrappedValue.items.ids == ["ada's"])
            await shows(again) { $0.items.ids == ["bob's", "ada's"] && !$0.isSyncing }
            #expect(
                try await fixture.creators() == ["bob's": bob.load()?.user.id, "ada's": ada.load()?.user.id])
            await third.backend.close()
        }
    }

    @Test("writes pending at a sign-out are hidden, and are sent when the user signs in again")
    func waitsForItsAccount() async throws {
        try await withFixture { fixture in
            let app = fixture.app()
            let (auth, todos) = (app.auth, app.todos)
            let ada = try await signIn(app, fixture, "ada@example.org")
            try await todos.create(Todo(id: "1"))
            fixture.part.update(.broken)
            var errors: [CollectionError?] = []
            todos.create(Todo(id: "ada's"), onError: { errors.append($0 as? CollectionError) })
            try await auth.signOut()
            #expect(todos.wrappedValue.items[id: "ada's"] == nil && !todos.wrappedValue.isSyncing)
            #expect(await eventually { errors == [.signedOut] })
            todos.create(Todo(id: "nobody's"), onError: nil)
            #expect(todos.wrappedValue.isSyncing)
            fixture.part.update(.working)
            await shows(todos) { Set($0.items.ids) == ["1", "nobody's"] && !$0.isSyncing }
            let bob = try await signIn(app, fixture, "bob@example.org")
            try await todos.create(Todo(id: "bob's"))
            #expect(
                try await fixture.creators() == ["1": ada.id, "nobody's": Optional<String>.none, "bob's": bob.id])
            try await auth.signOut()
            _ = try await signIn(app, fixture, "ada@example.org")
            await shows(todos) { $0.items[id: "ada's"] != nil && $0.items.count == 4 && !$0.isSyncing }
            #expect(try await fixture.creators()["ada's"] == ada.id)
            await app.backend.close()
        }
    }

    @Test("a guest's pending writes move to the account that the guest becomes, and anonymous ones stay anonymous")
    func upgraded() async throws {
        try await withFixture { fixture in
            let app = fixture.app()
            let (auth, todos) = (app.auth, app.todos)
            todos.create(Todo(id: "nobody's"), onError: nil)
            let guest = try await auth.signInAsGuest()
            #expect(
                try await fixture.creators() == ["nobody's": Optional<String>.none], "it was sent before the sign-in")
            fixture.part.update(.broken)
            let call = todos.create(Todo(id: "guest's"), onError: nil)
            let user = try await signIn(app, fixture, "ada@example.org")
            #expect(user.id == guest.id && todos.wrappedValue.items[id: "guest's"] != nil)
            fixture.part.update(.working)
            try await call.value
            #expect(try await fixture.creators() == ["nobody's": Optional<String>.none, "guest's": guest.id])
            await app.backend.close()
        }
    }

    @Test("anonymous writes that could not be sent before a sign-in are sent anonymously all the same")
    func nobodys() async throws {
        try await withFixture { fixture in
            let app = fixture.app()
            let (auth, todos) = (app.auth, app.todos)
            await shows(todos) { !$0.isLoading }
            fixture.part.update(.broken)
            let call = todos.create(Todo(id: "nobody's"), onError: nil)
            let guest = try await auth.signInAsGuest()
            #expect(todos.wrappedValue.items.isEmpty, "the anonymous write is not shown to the guest")
            fixture.part.update(.working)
            try await call.value
            await shows(todos) { $0.items.ids == ["nobody's"] }
            try await todos.create(Todo(id: "guest's"))
            #expect(try await fixture.creators() == ["nobody's": Optional<String>.none, "guest's": guest.id])
            await app.backend.close()
        }
    }

    @Test("a write whose session was ended elsewhere is not sent anonymously: the client learns that it is signed out")
    func endedElsewhere() async throws {
        try await withFixture { fixture in
            let credentials = InMemoryCredentialStore()
            let link = try FaultyLink(to: #require(fixture.auth.server.address), seed: 1)
            let app = fixture.app(credentials, over: link)
            let (auth, todos) = (app.auth, app.todos)
            let guest = try await auth.signInAsGuest()
            try await todos.create(Todo(id: "1"))
            let other = try await fixture.auth.client()
            let token = try #require(credentials.load()?.refreshToken)
            // The write is made before the app learns of the end.
            await link.pauseTraffic()
            try await other.auth.signOut(token)
            let call = todos.create(Todo(id: "2"), onError: nil)
            let connections = link.counters.accepted
            await link.resumeTraffic()
            await #expect(throws: CollectionError.signedOut) { try await call.value }
            // The shared value follows the session in a task of its own.
            await shows(auth) { $0.state == .unauthenticated }
            let creators = try await fixture.creators()
            let reconnects = link.counters.accepted - connections
            #expect(creators == ["1": guest.id], "the guest is \(guest.id); \(reconnects) new connections")
            // A write made just afterwards is not anonymous either, because the connection belongs to the ended session. Over a new
            // connection, which a busy machine may need, it would be.
            var late: (any Error)?
            do { try await todos.create(Todo(id: "3")) } catch { late = error }
            if link.counters.accepted == connections {
                #expect(String(describing: late).contains("the session has ended"))
                #expect(try await fixture.creators() == creators)
            }
            await other.close()
            await app.backend.close()
            await link.close()
        }
    }

    @Test("the server refuses a write whose claimed user differs from the connection's")
    func otherAccount() async throws {
        try await CollectionTestEnvironment.run { fixture in
            for (connected, account, isDone) in [
                ("ada", "ada", true), ("ada", "bob", false), ("ada", "", false), ("nobody", "ada", false),
                ("nobody", "", true),
            ] {
                let guest = fixture.guest(connected)
                guest.client.register(errors: CollectionError.self)
                let mutation = DocumentMutation(number: 1, command: .add(DocumentID(RandomToken.make())))
                do {
                    try await guest.client.connect()
                    let outcomes = try await guest.collection().commit(
                        [mutation], from: RandomToken.make(), as: account)
                    #expect(outcomes.map(\.error) == [nil] && isDone)
                } catch {
                    #expect(error as? CollectionError == .otherAccount && !isDone)
                }
                await guest.client.close()
            }
        }
    }

    @Test(
        "a folder of pending writes belongs to one backend; another one gets an error that names the first, until that is closed"
    )
    func oneFolder() async throws {
        try await withFixture { fixture in
            let ada = try await guest(fixture)
            let first = fixture.app(ada, online: false)
            let wrote = first.todos
            wrote.create(Todo(id: "1"), onError: nil)
            let second = fixture.app(ada)
            let refused = second.todos
            let error = await #expect(throws: CollectionError.self) { try await refused.create(Todo(id: "2")) }
            let text = error.map { "\($0)" } ?? ""
            #expect(text.contains(fixture.folder.path) && text.contains("process \(getpid())"), "\(text)")
            #expect(refused.wrappedValue.readError as? CollectionError == error)
            await first.backend.close()
            try await refused.create(Todo(id: "2"))
            await shows(refused) { $0.items.ids == ["1", "2"] && !$0.isSyncing && !$0.isError }
            await #expect(throws: (any Error).self) { try await wrote.create(Todo(id: "3")) }
            await second.backend.close()
        }
    }
}
