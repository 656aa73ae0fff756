import SharedState
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SharedLoadingTests {
    private let store = SharedStore()

    @Test("a value that is loaded at once is there when the wrapper is")
    func atOnce() {
        @Shared(Backend(.value(5)).key, store: store) var count = 0
        #expect(count == 5)
        #expect(!$count.isLoading)
    }

    @Test("until a value is loaded the initial one is there, and the wrapper is loading")
    func later() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        #expect(count == 1)
        #expect($count.isLoading)
        backend.loads[0].resume(returning: 5)
        #expect(count == 5)
        #expect(!$count.isLoading)
    }

    @Test("a failed load is a load error, kept until the next success")
    func failure() async {
        let backend = Backend<Int>(.error(Oops(number: 1)))
        @Shared(backend.key, store: store) var count = 1
        #expect(count == 1)
        #expect($count.loadError as? Oops == Oops(number: 1))
        backend.answer(.error(Oops(number: 2)))
        await #expect(throws: Oops(number: 2)) { try await $count.load() }
        #expect($count.loadError as? Oops == Oops(number: 2))
        backend.answer(.value(7))
        await #expect(throws: Never.self) { try await $count.load() }
        #expect(count == 7)
        #expect($count.loadError == nil)
    }

    @Test("a load that finds nothing goes back to the initial value")
    func nothing() async throws {
        let backend = Backend<Int>()
        @Shared(backend.key, store: store) var count = 1
        $count.withLock { $0 = 2 }
        try await $count.load()
        #expect(count == 1)
    }

    @Test("a load does not undo what was set after it began")
    func setMeanwhile() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        $count.withLock { $0 = 2 }
        backend.loads[0].resume(returning: 5)
        #expect(count == 2)
        #expect(!$count.isLoading)
    }

    @Test("a load does not undo what the subscription sent after it began")
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
        backend.loads[0].resume(throwing: Oops())
        #expect(count == 2)
        #expect($count.loadError == nil)
        #expect(!$count.isLoading)
    }

    @Test("a load that began later brings its value also when one that began before has ended meanwhile")
    func overlapping() async {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        let load = Task { [shared = $count] in try await shared.load() }
        #expect(await eventually { backend.loads.count == 2 }, "the later one has begun")
        backend.loads[0].resume(returning: 5)
        #expect(count == 5)
        backend.loads[1].resume(returning: 6)
        #expect(count == 6)
        load.cancel()
    }

    @Test("what another wrapper has set while a new one is loaded, and has let go of, is not lost")
    func setWhileMade() {
        let store = store
        /// Another wrapper comes and goes while the first load is under way.
        struct Slow: SharedKey {
            let saved: Note<Int>
            let isFirst: Note<Void>
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
        let shared = Shared(wrappedValue: 0, Slow(saved: Note(), isFirst: Note()), store: store)
        #expect(shared.wrappedValue == 3)
        #expect(store.referenceCount == 1)
    }

    @Test("the first outcome of a continuation counts")
    func firstOutcome() {
        let backend = Backend<Int>(.later)
        @Shared(backend.key, store: store) var count = 1
        backend.loads[0].resume(returning: 2)
        backend.loads[0].resume(returning: 3)
        backend.loads[0].resume(throwing: Oops())
        #expect(count == 2)
        #expect($count.loadError == nil)
    }

    @Test("what the work of a key throws is the error of its load or save")
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

    @Test("a cancelled task does not wait for its load, which goes on")
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
        backend.subscriber.yield(throwing: Oops())
        #expect($numbers.loadError is Oops)
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
            let seen: Note<ObjectIdentifier>
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
        let seen = Note<ObjectIdentifier>()
        @SharedReader(Probe(seen: seen), store: store) var count = 0
        #expect(seen.entries == [ObjectIdentifier(store), ObjectIdentifier(store)])
    }
}
