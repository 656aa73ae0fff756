import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@MainActor @Suite(.timeLimit(.minutes(5))) struct SyncedCollectionTests {
    @Test("documents created, changed and deleted by one client are seen by the other")
    func twoClients() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest().todos(), environment.guest().todos())
            #expect(ada.wrappedValue.isLoading)
            try await ada.create(Todo(id: "1", title: "Milk"))
            await shows(bob) { $0.items.map(\.title) == ["Milk"] && !$0.isLoading && $0.lastSyncedAt != nil }
            try await bob.update("1") { $0.isDone = true }
            await shows(ada) { $0.items[id: "1"]?.isDone == true }
            try await ada.delete("1")
            await shows(bob) { $0.items.isEmpty }
            #expect(
                !ada.wrappedValue.isSyncing && !ada.wrappedValue.isError && ada.wrappedValue.writeStatus == .success)
        }
    }

    @Test("a write is shown immediately, and its callbacks run once and in order")
    func callbacks() async throws {
        try await CollectionTestEnvironment.run { environment in
            let todos = environment.guest().todos()
            var log: [String] = []
            let call = todos.create(
                Todo(id: "1"), onAttempt: { log.append("attempt \(todos.wrappedValue.items.count)") },
                onSuccess: { log.append("success") }, onError: { _ in log.append("error") },
                onSettled: { _ in log.append("settled") })
            #expect(log == ["attempt 1"] && todos.wrappedValue.isSyncing && todos.wrappedValue.writeStatus == .pending)
            try await call.value
            let again = todos.create(
                Todo(id: "1"), onError: { log.append("\($0)") }, onSettled: { _ in log.append("settled") })
            _ = try? await again.value
            #expect(
                log == [
                    "attempt 1", "success", "settled", "\(CollectionError.alreadyExists(id: "1"))", "settled",
                ])
            #expect(todos.wrappedValue.error as? CollectionError == .alreadyExists(id: "1"))
            todos.reset()
            #expect(todos.wrappedValue.error == nil)
        }
    }

    @Test("a write never flickers: once shown it stays, while responses and results arrive")
    func noFlicker() async throws {
        try await CollectionTestEnvironment.run { environment in
            let todos = environment.guest().todos()
            try await todos.create(Todo(id: "1"))
            let watching = Task {
                var last = 0
                for await value in todos.updates {
                    let now = value.items[id: "1"]?.priority ?? -1
                    if now < last { return "\(now) after \(last)" }
                    last = now
                    if now == 60 { break }
                }
                return ""
            }
            for number in 1...60 {
                let call = todos.update("1", onError: nil) { $0.priority = number }
                if number % 3 == 0 { try await call.value }
            }
            #expect(await watching.value == "")
        }
    }

    @Test("a refused write is rolled back and reported")
    func rollback() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest("ada").todos(), environment.guest("bob").todos())
            try await ada.create(Todo(id: "1", title: "Ada's"))
            await shows(bob) { $0.items.count == 1 }
            let call = bob.update("1", onError: nil) { $0.title = "Bob's" }
            #expect(bob.wrappedValue.items[id: "1"]?.title == "Bob's")
            await #expect(throws: CollectionError.forbidden(.update, id: "1")) { try await call.value }
            #expect(bob.wrappedValue.items[id: "1"]?.title == "Ada's")
            await #expect(throws: CollectionError.forbidden(.delete, id: "1")) { try await bob.delete("1") }
            #expect(bob.wrappedValue.items.count == 1)
            await #expect(throws: CollectionError.notFound(id: "2")) { try await bob.update("2") { $0.title = "?" } }
        }
    }

    @Test("only changed fields are sent: changes of different fields merge, and the later change of one field wins")
    func fields() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest().todos(), environment.guest().todos())
            try await ada.create(Todo(id: "1", title: "Milk", note: "fresh"))
            await shows(bob) { $0.items.count == 1 }
            let calls = [
                ada.update("1", onError: nil) { $0.title = "Tea" }, bob.update("1", onError: nil) { $0.isDone = true },
            ]
            for call in calls { try await call.value }
            let merged = Todo(id: "1", title: "Tea", isDone: true, note: "fresh")
            await shows(ada) { $0.items.elements == [merged] }
            await shows(bob) { $0.items.elements == [merged] }
            try await ada.update("1") { $0.title = "Coffee" }
            try await bob.update("1") {
                $0.title = "Water"
                $0.note = nil
            }
            let last = Todo(id: "1", title: "Water", isDone: true)
            await shows(ada) { $0.items.elements == [last] }
            await shows(bob) { $0.items.elements == [last] }
        }
    }

    @Test("links of several clients to one document accumulate")
    func links() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest().todos(), environment.guest().todos())
            try await ada.create(Todo(id: "1"))
            await shows(bob) { $0.items.count == 1 }
            let calls = [
                ada.link("1", "tags", to: "a", onError: nil), bob.link("1", "tags", to: "b", onError: nil),
                ada.link("1", "tags", to: "a", onError: nil),
            ]
            #expect(ada.wrappedValue.items[id: "1"]?.tags == ["a"])
            for call in calls { try await call.value }
            await shows(ada) { Set($0.items[id: "1"]?.tags ?? []) == ["a", "b"] && $0.items[0].tags.count == 2 }
            try await bob.unlink("1", "tags", from: "a")
            await shows(ada) { $0.items[id: "1"]?.tags == ["b"] }
        }
    }

    @Test("queries with filter, order and limit follow the documents, including the client's own writes")
    func queries() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest()
            let all = guest.todos()
            let top = guest.todos(
                where: [.field("isDone", equals: .bool(false))], order: [.descending("priority")], limit: 2)
            let other = environment.guest().todos(
                where: [.field("isDone", equals: .bool(false))], order: [.descending("priority")], limit: 2)
            for number in 1...4 { all.create(Todo(id: "\(number)", priority: number), onError: nil) }
            #expect(top.wrappedValue.items.ids == ["4", "3"], "before the server has responded")
            try await all.update("4") { $0.isDone = true }
            await shows(top) { $0.items.ids == ["3", "2"] }
            await shows(other) { $0.items.ids == ["3", "2"] }
            try await all.update("1") { $0.priority = 9 }
            await shows(other) { $0.items.ids == ["1", "3"] }
            try await all.delete("1")
            await shows(other) { $0.items.ids == ["3", "2"] }
            // It changes nothing in the second query, which shows its revision all the same.
            try await all.update("4") { $0.title = "done" }
            #expect(
                await eventually { all.wrappedValue.link?.pendingWrites(of: .client).pending.entries.isEmpty == true })
            #expect(top.wrappedValue.items.ids == ["3", "2"])
        }
    }

    @Test("closing a query does not affect others that show more of its list")
    func sameList() async throws {
        var limits = CollectionLimits()
        limits.idleQueryTime = .zero
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("bob"))
            let todos = bob.todos(order: [.ascending("priority")], limit: 10)
            await shows(todos) { !$0.isLoading }
            let first = EncodedJSON(CollectionQuery(order: [.ascending("priority")], limit: 1).value)
            try await ada.client.connect()
            let collection = try ada.collection()
            _ = try await collection.open(first)
            #expect(environment.host.queryCount == 2)
            try await collection.close(first)
            #expect(await eventually { environment.host.queryCount == 1 })
            let fields: JSONObject = [
                "title": .string(""), "isDone": .bool(false), "tags": .array([]), "priority": .integer(1),
            ]
            let outcomes = try await collection.commit([.add("1", fields)], from: "0123456789abcdef")
            #expect(outcomes.map(\.error) == [nil])
            await shows(todos) { $0.items.ids == ["1"] }
        }
    }

    @Test("a query is evaluated once for all its readers, and ends with the last of them")
    func sharedQueries() async throws {
        var limits = CollectionLimits()
        limits.idleQueryTime = .zero
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guests = (0..<3).map { _ in environment.guest() }
            var values: [Shared<SyncedCollection<Todo>>]? = guests.map { guest in
                guest.todos(where: [
                    .field("isDone", equals: .bool(false)), .field("priority", isLessThan: .integer(3)),
                ])
            }
            let other = guests[0].todos(where: [
                .field("priority", isLessThan: .integer(3)), .field("isDone", equals: .bool(false)),
                .field("priority", isLessThan: .integer(3)),
            ])
            for value in values! { await shows(value) { !$0.isLoading } }
            await shows(other) { !$0.isLoading }
            #expect(environment.host.queryCount == 1)
            values = nil
            try await other.create(Todo(id: "1"))
            #expect(environment.host.queryCount == 1)
            await guests[0].client.close()
            #expect(await eventually { environment.host.queryCount == 0 })
            #expect(environment.host.collectionCount == 1)
        }
    }

    @Test("the value of a collection cannot be set: it keeps its content, with an error")
    func assignment() async throws {
        try await CollectionTestEnvironment.run { environment in
            let todos = environment.guest().todos()
            try await todos.create(Todo(id: "1"))
            await #expect(throws: CollectionError.notAssignable) { try await todos.save() }
            todos.withLock { $0 = SyncedCollection(link: nil) }
            #expect(todos.wrappedValue.items.ids == ["1"])
            #expect(todos.saveError as? CollectionError == .notAssignable)
        }
    }

    @Test("without a backend every write fails, with callbacks")
    func noBackend() async {
        let todos = Shared(Schema.todos, store: SharedStore())
        #expect(todos.wrappedValue.error as? CollectionError == .noBackend)
        await #expect(throws: CollectionError.noBackend) { try await todos.create(Todo(id: "1")) }
    }
}
