import QStream
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct UtilityTests {
    struct Refusal: Error, Equatable {}

    @Test("sequences are processed one element after another")
    func sequences() async throws {
        let numbers = [1, 2, 3, 4]
        #expect(await numbers.mapAsync { $0 * 2 } == [2, 4, 6, 8])
        #expect(await numbers.compactMapAsync { $0 > 2 ? "\($0)" : nil } == ["3", "4"])
        #expect(await numbers.flatMapAsync { [$0, $0] }.count == 8)
        #expect(await numbers.filterAsync { $0 > 2 } == [3, 4])
        #expect(await numbers.containsAsync { $0 == 3 })
        #expect(await !numbers.containsAsync { $0 == 9 })
        var sum = 0
        await numbers.forEachAsync { number in
            await Task.yield()
            sum += number
        }
        #expect(sum == 10)
        #expect(await Optional(3).mapAsync { $0 + 1 } == 4)
        #expect(await Int?.none.flatMapAsync { $0 + 1 } == nil)
        #expect(Int?.none.map({ $0 + 1 }, default: 7) == 7)
        await #expect(throws: Refusal.self) {
            try await numbers.mapAsync { _ throws(Refusal) -> Int in throw Refusal() }
        }
    }

    @Test("concurrent work runs concurrently, with results in the requested order")
    func concurrent() async throws {
        let latch = Latch()
        // Each waits for the last: run one after another they would never end.
        await (1...4).forEachConcurrent { number in
            if number == 4 { await latch.open() } else { await latch.wait() }
        }
        #expect(await (1...50).mapConcurrent { $0 * 2 } == (1...50).map { $0 * 2 })
        let gate = Latch()
        let completed = await [1, 2].mapConcurrent(orderBy: .completion) { number in
            if number == 1 { await gate.wait() } else { await gate.open() }
            return number
        }
        #expect(completed.sorted() == [1, 2])
        #expect(await ["a": 1].mapValuesConcurrent { $0 + 1 } == ["a": 2])
        await #expect(throws: Refusal.self) { try await [1].forEachConcurrent { _ in throw Refusal() } }
        await #expect(throws: Refusal.self) { try await [1].mapConcurrent { _ -> Int in throw Refusal() } }
    }

    @Test("a task sleeps for a number of seconds, and not when it is cancelled")
    func seconds() async throws {
        let pause: @Sendable (Double) async throws -> Void = Task<Never, Never>.sleep(timeInterval:)
        try await pause(0.001)
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await pause(3_600)
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }

    private func work(_ body: @escaping @Sendable () async throws -> Int) -> @Sendable () async throws -> Int { body }

    @Test("all gives every result or every error, any the first result")
    func allAndAny() async throws {
        let (number, text) = try await Task.all(of: Task { 1 }, Task { "a" })
        #expect((number, text) == (1, "a"))
        await #expect(throws: Refusal.self) {
            try await Task.all(of: Task { 1 }, Task { throw Refusal() } as Task<Int, any Error>)
        }
        do {
            _ = try await Task.all(of: [work { 1 }, work { throw Refusal() }, work { throw Refusal() }])
            Issue.record("nothing was thrown")
        } catch AllTaskError.someFailed(let errors) {
            #expect(errors.count == 2)
        }
        #expect(try await Task.all(of: [{ 1 }, { 2 }]) == [1, 2])
        #expect(try await Task.any(of: { throw Refusal() }, { 2 }) == 2)
        #expect(try await Task.any(of: Task { 3 }) == 3)
        await #expect(throws: AnyTaskError.self) { try await Task.any(of: [work { throw Refusal() }]) }
        await #expect(throws: Refusal.self) {
            try await Task.any(of: [work { throw Refusal() }], failImmediately: true)
        }
    }

    @Test("a time limit throws when it is over and cancels the work")
    func timeout() async throws {
        #expect(try await Task.withTimeout(.seconds(10)) { 1 } == 1)
        #expect(try await withTimeout(.seconds(10)) { 2 } == 2)
        let clock = TestClock()
        let log = Log<String>()
        let waiting = Task {
            try await withTimeout(.seconds(1), clock: clock) {
                do { try await clock.sleep(for: .seconds(60)) } catch {
                    log.record("cancelled")
                    throw error
                }
            }
        }
        #expect(await eventually { clock.sleeperCount == 2 }, "both sleep")
        clock.set(to: .init(offset: .seconds(1)))
        await #expect(throws: TimeoutError.self) { try await waiting.value }
        #expect(log.values == ["cancelled"])
    }

    @Test("cancelable abandons work that ignores cancellation")
    func cancelableWork() async throws {
        let latch = Latch()
        let waiting = Task { try await cancelable { await latch.wait() } }
        #expect(await eventually { await latch.arrivals == 1 }, "the work has begun")
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        await latch.open()
        #expect(try await cancelable { 3 } == 3)
        #expect(await Result { () async throws(Refusal) -> Int in throw Refusal() } == .failure(Refusal()))
    }

    @Test("boxes store the given values")
    func boxes() async {
        let actor = ValueActor(1)
        await actor.set(2)
        #expect(
            await actor.mutate {
                $0 += 1; return $0
            } == 3)
        let named = ValueActor(value: 1)
        await named.set(value: 2)
        let text = await named.execute { value in
            value += 1
            return "\(value)"
        }
        #expect(text == "3")
        #expect(await named.value == 3)
        let synced = Synced([1])
        synced.mutate { $0.append(2) }
        synced.value.append(3)
        #expect(synced.value == [1, 2, 3])
        var object: Latch? = Latch()
        let reference = Weak(object)
        #expect(reference.object != nil)
        object = nil
        #expect(reference.object == nil)
        #expect(SendableVoid() == SendableVoid())
    }
}
