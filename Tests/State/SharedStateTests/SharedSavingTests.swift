import SharedState
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SharedSavingTests {
    private let store = SharedStore()

    @Test("each change is passed to the key before withLock returns")
    func didSet() {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 0
        $count.withLock { $0 = 1 }
        $count.withLock { $0 = 2 }
        #expect(backend.saves.map(\.value) == [1, 2])
        #expect(backend.saves.allSatisfy { $0.context == .didSet })
    }

    @Test("values from a load or a subscription are not saved")
    func fromOutside() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 0
        backend.loads[0].resume(returning: 1)
        backend.subscriber.yield(2)
        #expect(count == 2)
        #expect(backend.saves.isEmpty)
    }

    @Test("save() waits for the key, and throws its error")
    func explicit() async {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 5
        backend.holdSaves()
        let task = Task { [shared = $count] in try await shared.save() }
        #expect(await eventually { backend.saves.count == 1 }, "the save has started")
        #expect(backend.saves[0].context == .userInitiated)
        #expect(backend.saves[0].value == 5)
        backend.saves[0].continuation.resume(throwing: TestError())
        await #expect(throws: TestError()) { try await task.value }
        #expect($count.saveError is TestError)
    }

    @Test("a save error stays until the next success, and an older save is ignored after a newer one")
    func saveError() {
        let backend = Backend<Int>()
        backend.holdSaves()
        @Shared(backend.key, store: store) var count = 0
        for number in 1...3 { $count.withLock { $0 = number } }
        backend.saves[1].continuation.resume(throwing: TestError(number: 2))
        #expect($count.saveError as? TestError == TestError(number: 2))
        backend.saves[0].continuation.resume()
        #expect($count.saveError as? TestError == TestError(number: 2))
        backend.saves[2].continuation.resume()
        #expect($count.saveError == nil)
    }

    @Test("a key that changes the value while it saves receives the new value afterwards, not recursively")
    func reentrant() {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 0
        let order = RecordedEntries<Int>()
        backend.onSave { [shared = $count] value in
            if value < 3 { shared.withLock { $0 += 1 } }
            order.add(value)
        }
        $count.withLock { $0 = 1 }
        backend.onSave { _ in }
        #expect(order.entries == [1, 2, 3])
        #expect(count == 3)
    }

    @Test("a successful save ends the error of an earlier load, and not that of a later one")
    func loadError() async throws {
        struct Failure: Error {}
        let backend = Backend<Int>(.error(Failure()))
        @Shared(backend.key, store: store) var count = 0
        #expect($count.loadError is Failure)
        $count.withLock { $0 = 1 }
        #expect($count.loadError == nil)
        backend.holdSaves()
        $count.withLock { $0 = 2 }
        backend.subscriber.yield(throwing: Failure())
        backend.saves[1].continuation.resume()
        #expect($count.loadError is Failure)
    }

    @Test("a key that drops its continuation fails the save")
    func abandoned() {
        struct DroppingKey: SharedKey {
            var id: Int { 0 }
            func load(context: LoadContext<Int>, continuation: LoadContinuation<Int>) {
                continuation.resumeReturningInitialValue()
            }
            func subscribe(context: LoadContext<Int>, subscriber: SharedSubscriber<Int>) -> SharedSubscription {
                SharedSubscription()
            }
            func save(_ value: Int, context: SaveContext, continuation: SaveContinuation) {}
        }
        @Shared(DroppingKey(), store: store) var count = 0
        $count.withLock { $0 = 1 }
        #expect(count == 1)
        #expect($count.saveError is AbandonedContinuation)
    }
}
