import Foundation
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

/// The data that an app shows before, and without, a connection.
@MainActor @Suite(.timeLimit(.minutes(5))) struct OfflineCollectionTests {
    private func app(_ environment: CollectionTestEnvironment, at address: SocketAddress, in folder: TemporaryFolder)
        -> CollectionTestClient
    {
        let guest = environment.guest(at: address)
        guest.backend.enableOfflineStorage(in: URL(fileURLWithPath: folder.path), log: { Issue.record("\($0)") })
        return guest
    }

    @Test(
        "after a restart without a connection the cached documents are shown, with pending writes, and marked as stale")
    func restart() async throws {
        try await CollectionTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let folder = try TemporaryFolder()
            let other = environment.guest().todos()
            for id in ["1", "2"] { try await other.create(Todo(id: id)) }
            let open = [QueryCondition.field("isDone", equals: .bool(false))]
            let first = app(environment, at: link.address, in: folder)
            let before = [first.todos(), first.todos(where: open)]
            for value in before { await shows(value) { $0.items.count == 2 && !$0.isStale && !$0.isLoading } }
            let syncedAt = before[0].wrappedValue.lastSyncedAt
            let (second, after, watching) = try await link.refuseConnections {
                await link.disconnectAll()
                before[0].create(Todo(id: "3"), onError: nil)
                await first.backend.close()

                let second = app(environment, at: link.address, in: folder)
                let after = second.todos()
                #expect(after.wrappedValue.items.ids == ["1", "2", "3"])
                #expect(after.wrappedValue.isStale && after.wrappedValue.isSyncing)
                #expect(!after.wrappedValue.isLoading && !after.wrappedValue.isError)
                let difference = after.wrappedValue.lastSyncedAt!.timeIntervalSince(syncedAt!)
                #expect(abs(difference) < 0.001)
                after.update("1", onError: nil) { $0.isDone = true }
                #expect(second.todos(where: open).wrappedValue.items.ids == ["2", "3"])
                #expect(second.todos(limit: 1).wrappedValue.isLoading, "this query was never read")
                try await other.delete("2")
                let watching = Task {
                    var stale: [Bool] = []
                    for await value in after.updates {
                        #expect(!value.items.isEmpty && !value.isLoading, "the value does not flicker")
                        if stale.last != value.isStale { stale.append(value.isStale) }
                        if value.items.ids == ["1", "3"], !value.isSyncing { return stale }
                    }
                    return stale
                }
                return (second, after, watching)
            }
            #expect(await watching.value == [true, false])
            #expect(after.wrappedValue.items[id: "1"]?.isDone == true)
            await second.backend.close()
            await link.close()
        }
    }

    @Test("without a connection the shown documents are stale, and after the reconnection current, even if unchanged")
    func lostConnection() async throws {
        try await CollectionTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let todos = environment.guest(at: link.address).todos()
            try await todos.create(Todo(id: "1"))
            await shows(todos) { $0.items.count == 1 && !$0.isStale && !$0.isLoading }
            let before = todos.wrappedValue.lastSyncedAt!
            try await link.refuseConnections {
                await link.disconnectAll()
                await shows(todos) { $0.isStale && $0.items.count == 1 && !$0.isLoading }
            }
            await shows(todos) { !$0.isStale }
            #expect(todos.wrappedValue.items.count == 1 && todos.wrappedValue.lastSyncedAt! > before)
            await link.close()
        }
    }

    @Test("a refusal by the server is reported, and the cached documents stay stale")
    func refused() async throws {
        let folder = try TemporaryFolder()
        var port = 0
        for isFirst in [true, false] {
            var limits = CollectionLimits()
            if !isFirst { limits.queriesPerConnection = 0 }
            let environment = try await CollectionTestEnvironment.begin(limits: limits, port: port)
            port = environment.address.port
            let guest = app(environment, at: environment.address, in: folder)
            let todos = guest.todos()
            if isFirst {
                try await todos.create(Todo(id: "1"))
                await shows(todos) { $0.items.count == 1 && !$0.isStale && !$0.isLoading }
            } else {
                #expect(todos.wrappedValue.items.ids == ["1"])
                await shows(todos) { $0.readError as? CollectionError == .tooManyQueries(limit: 0) }
                #expect(todos.wrappedValue.isStale && todos.wrappedValue.items.ids == ["1"])
            }
            await guest.backend.close()
            await environment.server.shutdown(drain: .zero)
        }
    }

    @Test("a user who signs in sees no cached data of another user; signing out deletes the cache")
    func accounts() async throws {
        let auth = try await AuthServer()
        CollectionHost.expose(on: auth.server, rules: OwnRules())
        let folder = try TemporaryFolder()
        let credentials = InMemoryCredentialStore()
        func app() -> (TrebuchetBackend, Shared<AuthSession>, Shared<SyncedCollection<Todo>>) {
            let backend = auth.backend(credentials: credentials)
            backend.enableOfflineStorage(in: URL(fileURLWithPath: folder.path), log: { Issue.record("\($0)") })
            let store = SharedStore()
            return backend.withCurrent {
                (
                    backend, Shared(.trebuchetAuth, store: store),
                    Shared(.trebuchetCollection(Schema.todos), store: store)
                )
            }
        }
        let (first, session, todos) = app()
        try await session.signInAsGuest()
        try await todos.create(Todo(id: "1"))
        await shows(todos) { $0.items.ids == ["1"] && !$0.isStale && !$0.isLoading }
        await first.close()
        #expect(results(in: folder).count == 1)

        let (second, again, read) = app()
        #expect(read.wrappedValue.items.ids == ["1"] && read.wrappedValue.isStale, "the account is unchanged")
        await shows(read) { !$0.isStale }
        let watching = Task {
            for await value in read.updates where value.items.isEmpty { return true }
            return false
        }
        try await again.signOut()
        #expect(read.wrappedValue.items.isEmpty && results(in: folder).isEmpty)
        #expect(await watching.value)
        await shows(read) { !$0.isLoading && !$0.isStale && $0.items.isEmpty }
        try await again.signInAsGuest()
        await shows(read) { !$0.isLoading && !$0.isStale }
        #expect(read.wrappedValue.items.isEmpty, "another guest")
        try await read.create(Todo(id: "2"))
        await shows(read) { $0.items.ids == ["2"] && !$0.isSyncing }
        await second.close()
        await auth.stop()
    }

    @Test("cached data of a user who was signed out by another process is deleted at the next use of the app")
    func signedOutByAnotherProcess() async throws {
        let auth = try await AuthServer()
        CollectionHost.expose(on: auth.server, rules: OwnRules())
        let folder = try TemporaryFolder()
        let credentials = InMemoryCredentialStore()
        func app() -> (backend: TrebuchetBackend, auth: Shared<AuthSession>, todos: Shared<SyncedCollection<Todo>>) {
            let backend = auth.backend(credentials: credentials)
            backend.enableOfflineStorage(in: URL(fileURLWithPath: folder.path), log: { Issue.record("\($0)") })
            let store = SharedStore()
            return backend.withCurrent {
                (
                    backend, Shared(.trebuchetAuth, store: store),
                    Shared(.trebuchetCollection(Schema.todos), store: store)
                )
            }
        }
        let first = app()
        try await first.auth.signInAsGuest()
        try await first.todos.create(Todo(id: "1"))
        await shows(first.todos) { $0.items.ids == ["1"] && !$0.isStale && !$0.isLoading }
        await first.backend.close()
        #expect(results(in: folder).contains { $0.contains("user-") })
        credentials.save(nil)
        let second = app()
        #expect(await eventually { !results(in: folder).contains { $0.contains("user-") } })
        #expect(second.todos.wrappedValue.items.isEmpty)
        await second.backend.close()
        await auth.stop()
    }

    /// Each user reads the documents that they have created.
    private struct OwnRules: CollectionRules {
        func isAllowed(
            _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
        ) -> Bool { action == .create || document.creator == principal?.id }
    }

    private func results(in folder: TemporaryFolder) -> [String] {
        let names = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        return names.filter { $0.hasSuffix(".result") }
    }

    @Test("a query closed and immediately opened again continues: the close does not affect the new one")
    func leftAndUsedAgain() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest()
            let todos = guest.todos()
            // A collection without documents would end with its last query.
            try await todos.create(Todo(id: "0"))
            let link = try #require(todos.wrappedValue.link)
            let query = CollectionQuery(where: [.field("isDone", equals: .bool(true))])
            for number in 1...100 {
                let ticket = try await link.open(query, again: false)
                link.close(query)
                #expect(try await link.open(query, again: false) == ticket)
                // A commit reports the shown revision of each open query of its connection.
                let mutation = DocumentMutation(number: number, command: .add("\(number)"))
                let outcomes = try await guest.collection().commit([mutation], from: "0123456789abcdef")
                #expect(outcomes.last?.shown?.count == 2, "all documents, and this query")
            }
            await guest.client.close()
        }
    }

    @Test("a query that lags still shows a write that another query has seen")
    func differentMoments() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest()
            let todos = guest.todos()
            await shows(todos) { !$0.isLoading }
            let link = try #require(todos.wrappedValue.link)
            let late = LateFeed(query: .all)
            let number = link.addObserver(late)
            try await todos.create(Todo(id: "1"))
            await shows(todos) { $0.items.ids == ["1"] && !$0.isSyncing }
            try await todos.update("1") { $0.title = "x" }
            let shown = link.pendingWrites(of: .client).pending.apply(over: KeyedCollection(), .all, seen: 0)
            #expect(shown.map { $0.fields["title"] } == [.string("x")])
            link.remove(number)
            #expect(await eventually { link.pendingWrites(of: .client).pending.entries.isEmpty })
            await guest.client.close()
        }
    }

    /// A query whose result has not arrived.
    private final class LateFeed: CollectionObserver {
        let query: CollectionQuery
        var seen: Int { 0 }

        init(query: CollectionQuery) { self.query = query }
        func applyPositions(_ shown: [String: Int], through revision: Int) {}
        func refresh() {}
        func report(_ error: any Error, of account: ClientAccount) {}
        func accountChanged() {}
    }
}
