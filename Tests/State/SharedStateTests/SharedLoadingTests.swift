import SharedState
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SharedLoadingTests {
    private let store = SharedStore()

    @Test("a synchronously loaded value is available with the wrapper")
    func atOnce() {
        @Shared(Backend(.value(5)).key, store: store) var count = 0
        #expect(count == 5)
        #expect(!$count.isLoading)
    }

    @Test("the initial value is used until the load ends, and the wrapper is loading")
    func later() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        #expect(count == 1)
        #expect($count.isLoading)
        backend.loads[0].resume(returning: 5)
        #expect(count == 5)
        #expect(!$count.isLoading)
    }

    @Test("a failed load is a load error until the next success")
    func failure() async {
        let backend = Backend<Int>(.error(TestError(number: 1)))
        @Shared(backend.key, store: store) var count = 1
        #expect(count == 1)
        #expect($count.loadError as? TestError == TestError(number: 1))
        backend.answer(.error(TestError(number: 2)))
        await #expect(throws: TestError(number: 2)) { try await $count.load() }
        #expect($count.loadError as? TestError == TestError(number: 2))
        backend.answer(.value(7))
        await #expect(throws: Never.self) { try await $count.load() }
        #expect(count == 7)
        #expect($count.loadError == nil)
    }

    @Test("a load without a value restores the initial value")
    func nothing() async throws {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 1
        $count.withLock { $0 = 2 }
        try await $count.load()
        #expect(count == 1)
    }

    @Test("a load does not undo a value set after its start")
    func setMeanwhile() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        $count.withLock { $0 = 2 }
        backend.loads[0].resume(returning: 5)
        #expect(count == 2)
        #expect(!$count.isLoading)
    }

    @Test("a load does not undo a value from the subscription after its start")
    func yieldMeanwhile() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        backend.subscriber.yield(3)
        backend.loads[0].resume(returning: 5)
        #expect(count == 3)
    }

    @Test("an older load does not undo a newer one, in value or in error")
    func outdated() async throws {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        backend.answer(.value(2))
        try await $count.load()
        #expect($count.isLoading)
        backend.loads[0].resume(throwing: TestError())
        #expect(count == 2)
        #expect($count.loadError == nil)
        #expect(!$count.isLoading)
    }

    @Test("a later load sets its value also when an earlier one has ended meanwhile")
    func overlapping() async {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        let load = Task { [shared = $count] in try await shared.load() }
        #expect(await eventually { backend.loads.count == 2 }, "the later load has started")
        backend.loads[0].resume(returning: 5)
        #expect(count == 5)
        backend.loads[1].resume(returning: 6)
        #expect(count == 6)
        load.cancel()
    }

    @Test("a value that another wrapper set and released during the first load is not lost")
    func setWhileMade() {
        let store = store
        /// Another wrapper is created and released during the first load.
        struct Slow: SharedKey {
            let saved: RecordedEntries<Int>
            let isFirst: RecordedEntries<Void>
            var id: Int { 1 }

            func load(context: LoadContext<Int>, continuation: LoadContinuation<Int>) {
                let value = saved.entries.last
                if isFirst.count == 0 {
                    isFirst.add(())
                    Shared(wrappedValue: 0, self).withLock { $0 = 3 }
                }
                continuation.resume(with: .success(value))
            }

            func subscribe(context: LoadContext<Int>, subscriber: SharedSubscriber<Int>) -> SharedSubscription {
                SharedSubscription()
            }

            func save(_ value: Int, context: SaveContext, continuation: SaveContinuation) {
                saved.add(value)
                continuation.resume()
            }
        }
        let shared = Shared(wrappedValue: 0, Slow(saved: RecordedEntries(), isFirst: RecordedEntries()), store: store)
        #expect(shared.wrappedValue == 3)
        #expect(store.referenceCount == 1)
    }

    @Test("the first outcome of a continuation counts")
    func firstOutcome() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        backend.loads[0].resume(returning: 2)
        backend.loads[0].resume(returning: 3)
        backend.loads[0].resume(throwing: TestError())
        #expect(count == 2)
        #expect($count.loadError == nil)
    }

    @Test("an error of a key's work is the error of its load or save")
    func work() async throws {
        struct Refused: Error {}
        struct Remote: SharedKey {
            var id: Int { 0 }
            let isRefused: Bool
            private func answer() throws -> Int { if isRefused { throw Refused() } else { 7 } }
            func load(context: LoadContext<Int>, continuation: LoadContinuation<Int>) {
                continuation.resume { try answer() }
            }
            func subscribe(context: LoadContext<Int>, subscriber: SharedSubscriber<Int>) -> SharedSubscription {
                SharedSubscription()
            }
            func save(_ value: Int, context: SaveContext, continuation: SaveContinuation) {
                continuation.resume { _ = try answer() }
            }
        }
        @Shared(Remote(isRefused: true), store: store) var count = 0
        await #expect(throws: Refused.self) { try await $count.load() }
        #expect($count.loadError is Refused)
        await #expect(throws: Refused.self) { try await $count.save() }
        #expect($count.saveError is Refused)
        let loaded = try await Shared(require: Remote(isRefused: false), store: SharedStore())
        #expect(loaded.wrappedValue == 7)
        try await loaded.save()
    }

    @Test("a key that drops its continuation fails the load")
    func abandoned() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        backend.forgetLoads()
        #expect($count.loadError is AbandonedContinuation)
        #expect(!$count.isLoading)
    }

    @Test("a cancelled task does not wait for its load, which continues")
    func cancelled() async {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 1
        backend.answer(.later)
        let task = Task { [shared = $count] in try await shared.load() }
        #expect(await eventually { backend.loads.count == 2 }, "the load began")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect($count.isLoading)
        backend.loads[1].resume(returning: 9)
        #expect(count == 9)
    }

    @Test("a subscription can change a part of the value, show loading, and fail")
    func subscription() {
        let backend = Backend<[Int]>()
        @Shared(backend.key, store: store) var numbers = [1, 2]
        backend.subscriber.yieldLoading()
        #expect($numbers.isLoading)
        backend.subscriber.update { $0[0] = 9 }
        #expect(numbers == [9, 2])
        #expect(!$numbers.isLoading)
        backend.subscriber.yield(throwing: TestError())
        #expect($numbers.loadError is TestError)
        #expect(numbers == [9, 2])
        backend.subscriber.yield([])
        #expect($numbers.loadError == nil)
        #expect(numbers.isEmpty)
    }

    @Test("a value without a key loads and saves nothing, and does not fail")
    func noKey() async throws {
        @Shared(value: 1) var count
        try await $count.load()
        try await $count.save()
        #expect(!$count.isLoading)
        #expect(count == 1)
    }

    @Test("a key runs with the store of its wrapper")
    func ownStore() {
        struct Probe: SharedReaderKey {
            let seen: RecordedEntries<ObjectIdentifier>
            var id: Int { 1 }

            func load(context: LoadContext<Int>, continuation: LoadContinuation<Int>) {
                seen.add(ObjectIdentifier(SharedStore.current))
                continuation.resumeReturningInitialValue()
            }

            func subscribe(context: LoadContext<Int>, subscriber: SharedSubscriber<Int>) -> SharedSubscription {
                seen.add(ObjectIdentifier(SharedStore.current))
                return SharedSubscription()
            }
        }
        let seen = RecordedEntries<ObjectIdentifier>()
        @SharedReader(Probe(seen: seen), store: store) var count = 0
        #expect(seen.entries == [ObjectIdentifier(store), ObjectIdentifier(store)])
    }
}
