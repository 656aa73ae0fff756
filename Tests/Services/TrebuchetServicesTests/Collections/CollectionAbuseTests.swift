import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@MainActor @Suite(.timeLimit(.minutes(5))) struct CollectionAbuseTests {
    private static let secret = "0123456789abcdef"

    private func mutations(_ commands: [DocumentCommand], from first: Int = 1) -> [DocumentMutation] {
        commands.enumerated().map { DocumentMutation(number: first + $0, command: $1) }
    }

    private func connected(_ environment: CollectionTestEnvironment, _ name: String) async throws
        -> CollectionTestClient
    {
        let guest = environment.guest(name)
        try await guest.client.connect()
        return guest
    }

    @Test("a document of another creator cannot be changed, linked or deleted, whatever the caller claims")
    func othersDocuments() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, eve) = (try await connected(environment, "ada"), try await connected(environment, "eve"))
            _ = try await ada.collection().commit(mutations([.add("a", ["t": .integer(1)])]), from: Self.secret)
            let attempts: [DocumentCommand] = [
                .update(id: "a", fields: ["t": .integer(2)]), .update(id: "a", fields: ["creator": .string("eve")]),
                .link(id: "a", field: "l", target: .null), .unlink(id: "a", field: "t", target: .integer(1)),
                .delete(id: "a"), .add("a"),
            ]
            let outcomes = try await eve.collection().commit(mutations(attempts), from: "eve's own secret")
            #expect(
                outcomes.map(\.error) == [
                    .forbidden(.update, id: "a"), .forbidden(.update, id: "a"), .forbidden(.update, id: "a"),
                    .forbidden(.update, id: "a"), .forbidden(.delete, id: "a"), .alreadyExists(id: "a"),
                ])
            // With the secret of another client, and its next number.
            let stolen = try await eve.collection().commit(mutations([.delete(id: "a")], from: 2), from: Self.secret)
            #expect(stolen.map(\.error) == [.forbidden(.delete, id: "a")])
            let own = try await ada.collection().commit(mutations([.delete(id: "a")], from: 3), from: Self.secret)
            #expect(own.map(\.error) == [nil])
        }
    }

    @Test("an unused collection is unloaded, and is loaded again on demand")
    func idle() async throws {
        var limits = CollectionLimits()
        limits.idleTime = .milliseconds(20)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let ada = try await connected(environment, "ada")
            _ = try await ada.collection().commit(mutations([.add("a", ["t": .integer(1)])]), from: Self.secret)
            let host = environment.host
            #expect(await eventually { host.collectionCount == 0 })
            let again = try await ada.collection().commit(mutations([.add("a")], from: 2), from: Self.secret)
            #expect(again.map(\.error) == [.alreadyExists(id: "a")])
        }
    }

    @Test("a collection loaded for an invalid call is unloaded as well")
    func refusedCall() async throws {
        var limits = CollectionLimits()
        limits.idleTime = .milliseconds(20)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let peer = try await ForeignClient.connect(environment.address)
            for (number, arguments) in ["[7,true]", "[[],7]"].enumerated() {
                peer.invoke("\(number)", "collections/\(number)", "commit(_:from:)", arguments)
                #expect(try #require(await peer.answer("\(number)").answer).result == nil)
            }
            #expect(await eventually { environment.host.collectionCount == 0 })
            peer.close()
        }
    }

    @Test("a document too large, too many documents and too many bytes have specific errors, and affect no others")
    func sizes() async throws {
        var limits = CollectionLimits()
        limits.documentsPerCollection = 3
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, bob) = (environment.guest().todos(), environment.guest().todos())
            for size in [70 << 10, 600 << 10] {
                let error = await #expect(throws: CollectionError.self) {
                    try await ada.create(Todo(id: "1", title: String(repeating: "x", count: size)))
                }
                guard case .documentTooLarge("1", let bytes, _)? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
                #expect(bytes > size)
            }
            for id in ["1", "2", "3"] { try await ada.create(Todo(id: id)) }
            await #expect(throws: CollectionError.tooManyDocuments(limit: 3)) { try await ada.create(Todo(id: "4")) }
            await shows(bob) { $0.items.ids == ["1", "2", "3"] }
            try await bob.delete("1")
            try await ada.create(Todo(id: "4"))
        }
    }

    @Test("a connection and a server have a limit of open queries; closing one makes room")
    func queries() async throws {
        var limits = CollectionLimits()
        limits.queriesPerConnection = 4
        limits.queries = 6
        limits.idleQueryTime = .zero
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, bob) = (try await connected(environment, "ada"), try await connected(environment, "bob"))
            let (first, second) = (try ada.collection(), try bob.collection())
            let queries = (1...9).map { CollectionQuery(limit: $0) }
            for query in queries.prefix(4) { _ = try await first.open(query) }
            #expect(try await first.open(queries[0]) == first.open(queries[0]))
            await #expect(throws: CollectionError.tooManyQueries(limit: 4)) { try await first.open(queries[4]) }
            for query in queries.prefix(3) { _ = try await second.open(query) }
            try await second.close(queries[0])
            try await second.close(queries[1])
            for query in queries[4...5] { _ = try await second.open(query) }
            await #expect(throws: CollectionError.tooManyQueries(limit: 6)) { try await second.open(queries[6]) }
            await ada.client.close()
            #expect(await eventually { environment.host.queryCount == 3 })
            _ = try await second.open(queries[6])
            await #expect(throws: CollectionError.self) { try await second.open(CollectionQuery(limit: -1)) }
        }
    }

    @Test("a server has a limit of collections; empty, unused ones do not count")
    func collections() async throws {
        var limits = CollectionLimits()
        limits.collections = 2
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guest = try await connected(environment, "ada")
            for number in 0..<50 {
                let collection = try guest.collection("empty\(number)")
                #expect(try await collection.commit(mutations([.delete(id: "x")]), from: Self.secret).count == 1)
                #expect(await eventually { environment.host.collectionCount == 0 })
            }
            for name in ["a", "b"] {
                _ = try await guest.collection(name).commit(mutations([.add("x")]), from: Self.secret)
                _ = try await guest.collection(name).open(.all)
            }
            await #expect(throws: CollectionError.tooManyCollections(limit: 2)) {
                _ = try await guest.collection("c").commit(mutations([.add("x")]), from: Self.secret)
            }
            for name in ["a/b", "a b", "ä", "\u{301}a", String(repeating: "x", count: 129)] {
                await #expect(throws: CollectionError.invalidName) {
                    _ = try await guest.collection(name).commit(mutations([]), from: Self.secret)
                }
            }
        }
    }

    @Test("writes over the rate of a connection wait; refused ones are sent again, once each")
    func rate() async throws {
        var limits = CollectionLimits()
        limits.writesPerConnection = RateLimit(callsPerSecond: 50, burst: 10)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guest = try await connected(environment, "ada")
            let all = mutations((1...30).map { .add("\($0)") })
            let done = try await guest.collection("other").commit(all, from: Self.secret)
            #expect(done.count >= 10 && done.count < 30)
            let todos = environment.guest().todos()
            for number in 100..<140 { todos.create(Todo(id: "\(number)"), onError: nil) }
            await shows(todos) { !$0.isSyncing && $0.items.count == 40 }
            #expect(todos.wrappedValue.error == nil)
        }
    }

    @Test("a server without caller identification refuses calls, and invalid calls are refused")
    func invalidCalls() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        CollectionHost.expose(on: server)
        let guest = CollectionTestClient(at: try await server.start())
        try await guest.client.connect()
        await #expect(throws: CollectionError.unknownCaller) { try await guest.collection().open(.all) }
        await guest.client.close()
        await server.shutdown(drain: .zero)
        try await CollectionTestEnvironment.run { environment in
            let guest = try await connected(environment, "ada")
            await #expect(throws: CollectionError.self) {
                try await guest.collection().commit(mutations([]), from: "short")
            }
            await #expect(throws: CollectionError.self) {
                let many = mutations((0...CollectionLimits.mutationsPerCall).map { .delete(id: "\($0)") })
                return try await guest.collection().commit(many, from: Self.secret)
            }
        }
    }

    /// Each user reads only documents that they have created.
    private struct OwnDocuments: CollectionRules {
        func isAllowed(
            _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
        ) -> Bool { document.creator == principal?.id }
    }

    @Test("custom rules hide documents that a user may not read")
    func reading() async throws {
        try await CollectionTestEnvironment.run(rules: OwnDocuments()) { environment in
            let (ada, eve) = (environment.guest("ada").todos(), environment.guest("eve").todos())
            let seen = Task {
                for await value in eve.updates where value.items.contains(where: { $0.id == "eve's" }) {
                    return value.items.ids
                }
                return []
            }
            try await ada.create(Todo(id: "ada's"))
            await shows(ada) { $0.items.ids == ["ada's"] }
            try await eve.create(Todo(id: "eve's"))
            #expect(await seen.value == ["eve's"])
            // A write is shown before the first result has arrived, and a document that is not among the items can be changed only after
            // that.
            await shows(eve) { !$0.isLoading }
            await #expect(throws: CollectionError.notFound(id: "ada's")) {
                try await eve.update("ada's") { $0.title = "?" }
            }
            let late = environment.guest("eve").todos()
            await shows(late) { $0.items.ids == ["eve's"] }
        }
    }

    /// A store that fails on request.
    private final class FailingStore: StateStore {
        let memory = MemoryStore()
        let fails = Mutex(false)

        func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
            try await memory.get(keys)
        }
        func list(
            _ namespace: String, prefix: String, after: String?, limit: Int
        ) async throws(StateStoreError) -> [StateEntry] {
            try await memory.list(namespace, prefix: prefix, after: after, limit: limit)
        }
        func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await memory.readLog(key) }
        func write(_ writes: [StateWrite]) async throws(StateStoreError) {
            if fails.withLock({ $0 }) { throw StateStoreError(.full, "the disk is full") }
            try await memory.write(writes)
        }
    }

    @Test("a write that the store refuses is neither acknowledged nor shown to others, and succeeds later")
    func failingStore() async throws {
        let store = FailingStore()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let (ada, bob) = (environment.guest().todos(), environment.guest().todos())
            try await ada.create(Todo(id: "1"))
            store.fails.withLock { $0 = true }
            let eve = try await connected(environment, "eve")
            let direct = try eve.collection()
            await #expect(throws: CollectionError.self) {
                try await direct.commit(mutations([.add("2")]), from: Self.secret)
            }
            let call = ada.update("1", onError: nil) { $0.title = "later" }
            await shows(bob) { $0.items.elements == [Todo(id: "1")] }
            for _ in 0..<500 {
                let value = ada.wrappedValue
                guard value.isSyncing, value.writeStatus == .pending else {
                    Issue.record("the write was acknowledged")
                    break
                }
                await Task.yield()
            }
            store.fails.withLock { $0 = false }
            try await call.value
            await shows(bob) { $0.items.elements == [Todo(id: "1", title: "later")] }
            let again = try await direct.commit(mutations([.add("2")]), from: Self.secret)
            #expect(again.map(\.error) == [nil])
            await eve.client.close()
        }
    }
}
