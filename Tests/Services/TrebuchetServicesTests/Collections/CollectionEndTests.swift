import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// Commits in progress when their collection ends, since another node owns it.
@MainActor @Suite("Collections that end", .timeLimit(.minutes(5))) struct CollectionEndTests {
    private static let secret = "0123456789abcdef"
    private static let other = "fedcba9876543210"

    /// A store whose writes wait for the test, and fail on request.
    private final class DelayedWrites: StateStore {
        private let memory = MemoryStore()
        private let state = Mutex((isHeld: false, fails: false, waiting: 0))

        var waitingCount: Int { state.withLock { $0.waiting } }

        func hold() { state.withLock { $0.isHeld = true } }
        func release(failing fails: Bool) { state.withLock { ($0.isHeld, $0.fails) = (false, fails) } }

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
            state.withLock { $0.waiting += 1 }
            while state.withLock({ $0.isHeld }) { await Task.yield() }
            state.withLock { $0.waiting -= 1 }
            if state.withLock({ $0.fails }) { throw StateStoreError(.unavailable, "the engine is away") }
            try await memory.write(writes)
        }
    }

    private func collection(_ name: String, of environment: CollectionTestEnvironment) throws -> DocumentCollection {
        try #require(environment.host.live.first { $0.name == name }?.part)
    }

    private func ids(in store: any StateStore, _ environment: CollectionTestEnvironment) async throws -> Set<String> {
        let table = try await StoredCollection("todos", in: store).load(
            CollectionLimits(), at: environment.server, now: 0)
        return Set(table.documents.keys.map(\.text))
    }

    @Test(
        "a commit succeeds only when the batch that contains it is acknowledged, whatever happens to the batch in progress",
        arguments: [true, false], [1, nil])
    func endsWhileWriting(isWritten: Bool, reactors: Int?) async throws {
        let store = DelayedWrites()
        try await CollectionTestEnvironment.run(store: store, reactors: reactors) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let todos = try guest.collection()
            _ = try await todos.commit([.add("0")], from: Self.secret)
            let part = try collection("todos", of: environment)
            store.hold()
            let first = Task { try await todos.commit([.add("1")], from: Self.secret, at: 2) }
            #expect(await eventually { store.waitingCount == 1 })
            let second = Task { try await todos.commit([.add("2")], from: Self.other) }
            #expect(await eventually { await part.whenLocal { $0.table.unwrittenCount } == 2 })
            // The first mutation again, over another connection: it waits for the batch that contains it.
            let again = Task { try await todos.commit([.add("1")], from: Self.secret, at: 2) }
            #expect(await eventually { await part.whenLocal { $0.calls } == 4 })
            await part.whenLocal { $0.didMove() }
            store.release(failing: !isWritten)
            var errors: [CollectionError?] = []
            for task in [first, second, again] {
                errors.append(await #expect(throws: CollectionError.self) { try await task.value })
            }
            #expect(errors[0]?.isUnknownOutcome == true, "\(String(describing: errors[0]))")
            #expect(errors[1] == .closed)
            #expect(errors[2] == .closed || errors[2]?.isUnknownOutcome == true)
            #expect(await eventually { store.waitingCount == 0 })
            #expect(try await eventually { try await ids(in: store, environment) == (isWritten ? ["0", "1"] : ["0"]) })
            await guest.client.close()
        }
    }

    @Test("later commits are executed while the write of one that read another collection is in progress")
    func sharedWrite() async throws {
        let store = DelayedWrites()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let (todos, people) = (try guest.collection(), try guest.collection("people"))
            _ = try await people.commit([.add("tim")], from: Self.secret)
            _ = try await todos.commit([.add("0")], from: Self.secret)
            let part = try collection("todos", of: environment)
            store.hold()
            let link = DocumentCommand.link(id: "0", field: "who", target: .string("tim"), in: "people")
            let first = Task { try await todos.commit([link], from: Self.secret, at: 2) }
            #expect(await eventually { store.waitingCount == 1 })
            let later = (1...3).map { number in
                Task { try await todos.commit([.add(DocumentID("\(number)"))], from: "\(Self.other)-\(number)") }
            }
            // Those of one write, and those of the next.
            #expect(await eventually { await part.whenLocal { $0.table.unwrittenCount } == 4 })
            store.release(failing: false)
            for task in [first] + later { #expect(try await task.value.map(\.error) == [nil]) }
            #expect(try await ids(in: store, environment) == ["0", "1", "2", "3"])
            await guest.client.close()
        }
    }

    @Test(
        "commits in the reactor of their collection wait without a task each, and know the positions of their queries")
    func deferredResponses() async throws {
        let store = DelayedWrites()
        try await CollectionTestEnvironment.run(store: store, reactors: 1) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let todos = try guest.collection()
            _ = try await todos.commit([.add("0")], from: Self.secret)
            let part = try collection("todos", of: environment)
            // Calls after one that has suspended have their own tasks for a while.
            for number in 1...100 {
                _ = try await todos.commit([.add(DocumentID("a\(number)"))], from: "\(Self.other)\(number)")
            }
            store.hold()
            let writes = (1...3).map { number in
                Task { try await todos.commit([.add(DocumentID("\(number)"))], from: "\(Self.secret)-\(number)") }
            }
            #expect(await eventually { await part.whenLocal { $0.table.unwrittenCount } == 3 })
            let gatedCount = await part.whenLocal { ($0.current?.gatedCount ?? 0) + $0.next.gatedCount }
            #expect(gatedCount == 3)
            store.release(failing: false)
            for task in writes { #expect(try await task.value.map(\.error) == [nil]) }
            let ticket = try await todos.open(.all)
            let outcome = try await todos.commit([.add("4")], from: Self.secret, at: 2)
            let position = try #require(outcome.last?.shown?.values.first)
            #expect(position == outcome[0].revision && position > ticket.revision ?? 0)
            await guest.client.close()
        }
    }

    @Test("a store that does not respond leaves the outcome unknown, and a repeat is executed once")
    func unknown() async throws {
        let store = DelayedWrites()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let todos = try guest.collection()
            store.release(failing: true)
            let error = await #expect(throws: CollectionError.self) {
                try await todos.commit([.add("1")], from: Self.secret)
            }
            #expect(error?.isUnknownOutcome == true, "\(String(describing: error))")
            store.release(failing: false)
            #expect(try await todos.commit([.add("1")], from: Self.secret).map(\.revision).count == 1)
            #expect(try await ids(in: store, environment) == ["1"])
            await guest.client.close()
        }
    }

    @Test("a repeat that arrives while its batch is being written is answered with that batch")
    func repeatedWhileWriting() async throws {
        let store = DelayedWrites()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let todos = try guest.collection()
            _ = try await todos.commit([.add("0")], from: Self.secret)
            let part = try collection("todos", of: environment)
            store.hold()
            let first = Task { try await todos.commit([.add("1")], from: Self.secret, at: 2) }
            #expect(await eventually { store.waitingCount == 1 })
            let again = Task { try await todos.commit([.add("1")], from: Self.secret, at: 2) }
            #expect(await eventually { await part.whenLocal { !$0.next.isEmpty } == true })
            store.release(failing: false)
            let outcomes = try await [first.value, again.value]
            #expect(outcomes[0].map(\.revision) == outcomes[1].map(\.revision))
            #expect(try await ids(in: store, environment) == ["0", "1"])
            await guest.client.close()
        }
    }

    @Test("a commit that checks another collection when its own ends only fails")
    func endsWhileLooking() async throws {
        let store = CollectionWriteTests.SlowStore()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            _ = try await guest.collection("people").commit([.add("ada")], from: Self.secret)
        }
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let todos = try guest.collection()
            _ = try await todos.commit([.add("1", ["who": .array([])])], from: Self.secret)
            store.close()
            let link = DocumentCommand.link(id: "1", field: "who", target: .string("ada"), in: "people")
            let linking = Task { try await todos.commit([link], from: Self.secret, at: 2) }
            #expect(await eventually { store.waitingCount == 1 })
            let behind = Task { try await todos.commit([.update(id: "1", fields: [:])], from: Self.other) }
            let part = try collection("todos", of: environment)
            #expect(await eventually { await part.whenLocal { $0.calls } == 3 })
            await part.whenLocal { $0.didMove() }
            store.open()
            await #expect(throws: CollectionError.closed) { try await linking.value }
            await #expect(throws: CollectionError.closed) { try await behind.value }
            await guest.client.close()
        }
    }
}

extension CollectionError {
    fileprivate var isUnknownOutcome: Bool { if case .unknownOutcome = self { true } else { false } }
}
