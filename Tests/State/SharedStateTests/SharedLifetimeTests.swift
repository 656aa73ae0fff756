import Foundation
import TestSupport
import Testing

@testable import SharedState

@Suite(.timeLimit(.minutes(5)))
struct SharedLifetimeTests {
    private struct Pair: Sendable {
        var left = 0
        var right = 0
    }

    private let store = SharedStore()

    @Test("the subscription ends with the last wrapper, not before")
    func lastWrapper() {
        let backend = Backend<Int>()
        var first: Shared<Int>? = Shared(wrappedValue: 0, backend.key, store: store)
        var second: SharedReader<Int>? = SharedReader(wrappedValue: 0, backend.key, store: store)
        #expect(backend.subscribers.count == 1)
        first = nil
        #expect(backend.cancelCount == 0)
        second = nil
        #expect(backend.cancelCount == 1)
        #expect(store.referenceCount == 0)
        _ = (first, second)
    }

    @Test("a wrapper of a part keeps the whole alive")
    func part() {
        let backend = Backend<Pair>()
        var part: Shared<Int>? = Shared(wrappedValue: Pair(), backend.key, store: store).left
        #expect(backend.cancelCount == 0)
        part?.withLock { $0 = 1 }
        #expect(backend.saves.last?.value.left == 1)
        part = nil
        #expect(backend.cancelCount == 1)
    }

    @Test("a wrapper created after the last one was released loads and subscribes again")
    func reload() {
        let backend = Backend<Int>(.value(1))
        var shared: Shared<Int>? = Shared(wrappedValue: 0, backend.key, store: store)
        #expect(shared?.wrappedValue == 1)
        shared = nil
        backend.answer(.value(2))
        shared = Shared(wrappedValue: 0, backend.key, store: store)
        #expect(shared?.wrappedValue == 2)
        #expect(backend.subscribers.count == 2)
        #expect(backend.cancelCount == 1)
    }

    @Test("a subscriber does not retain the value, and does nothing after its release")
    func lateYield() {
        let backend = Backend<Int>()
        do {
            @Shared(backend.key, store: store) var count = 0
            backend.subscriber.yield(1)
            #expect(count == 1)
        }
        #expect(backend.cancelCount == 1)
        backend.subscriber.yield(2)
        backend.subscriber.yield(throwing: TestError())
    }

    @Test("a pending load does not retain the value")
    func pendingLoad() {
        let backend = Backend<Int>(.later)
        do {
            @Shared(backend.key, store: store) var count = 0
            #expect($count.isLoading)
        }
        #expect(backend.cancelCount == 1)
        backend.loads[0].resume(returning: 3)
    }

    @Test("a reader of updates does not retain the value, and ends with it")
    func updates() async {
        let backend = Backend<Int>()
        var shared: Shared<Int>? = Shared(wrappedValue: 0, backend.key, store: store)
        let updates = shared!.updates
        let reader = Task {
            var values: [Int] = []
            for await value in updates { values.append(value) }
            return values
        }
        shared?.withLock { $0 = 1 }
        shared = nil
        #expect(backend.cancelCount == 1)
        #expect(await reader.value.last == 1)
    }

    @Test("a store removes a file when no wrapper and no write needs it")
    func files() async throws {
        let (store, file) = (SharedStore(files: InMemoryFileStorage()), URL(fileURLWithPath: "/count.json"))
        do {
            let shared = Shared(wrappedValue: 0, .fileStorage(file), store: store)
            #expect(store.files.count == 1)
            shared.withLock { $0 = 1 }
            try await shared.save()
        }
        #expect(await eventually { store.files.count == 0 }, "the write is over")
        #expect(store.referenceCount == 0)
        #expect(Shared(wrappedValue: 0, .fileStorage(file), store: store).wrappedValue == 1)
    }

    @Test("an in-memory value outlives its wrappers, and not its store")
    func inMemory() {
        do {
            @Shared(.inMemory("count"), store: store) var count = 0
            $count.withLock { $0 = 5 }
        }
        #expect(store.referenceCount == 0)
        @Shared(.inMemory("count"), store: store) var count = 0
        #expect(count == 5)
        @Shared(.inMemory("count"), store: SharedStore()) var elsewhere = 0
        #expect(elsewhere == 0)
    }
}
