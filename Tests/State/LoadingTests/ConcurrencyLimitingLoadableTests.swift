import TestSupport
import Testing

@testable import Loading

@Suite(.timeLimit(.minutes(5))) @MainActor struct ConcurrencyLimitingLoadableTests {
    private let script = Script()

    /// Ends the fetches from `range` in their order, as each starts.
    private func endFetches(_ range: ClosedRange<Int>) async {
        for number in range {
            #expect(await eventually { script.isOpen(number) }, "fetch \(number) has begun")
            script.end(number, .value("r\(number)"))
        }
    }

    @Test("the limit holds in every burst, and every call loads", arguments: [1, 2, 3])
    func bursts(limit: Int) async {
        let limiter = ConcurrencyLimiter(limit: limit)
        let loader = ConcurrencyLimitingLoadable(wrapping: script.loader(), limiter: limiter)
        for burst in 0..<3 {
            var loads: [Task<Void, Never>] = []
            for count in 1...10 {
                loads.append(Task { await loader.load() })
                // One by one, so that the last call is also the last in the queue.
                #expect(
                    await eventually { script.open + limiter.waitingCount == count }, "the load has started, or waits")
            }
            #expect(script.open == limit)
            await endFetches(burst * 10 + 1...burst * 10 + 10)
            for load in loads { await load.ended }
            #expect(loader.currentState == .loaded("r\(burst * 10 + 10)"))
        }
        #expect(script.count == 30)
        #expect(script.mostOpen == limit)
    }

    @Test("many loaders share one limit")
    func shared() async {
        let limiter = ConcurrencyLimiter(limit: 2)
        let loaders = (0..<20).map { _ in ConcurrencyLimitingLoadable(wrapping: script.loader(), limiter: limiter) }
        let loads = loaders.map { loader in Task { await loader.load() } }
        await endFetches(1...20)
        for load in loads { await load.ended }
        #expect(loaders.allSatisfy { $0.currentState.value != nil })
        #expect(script.mostOpen == 2)
        #expect(limiter.freeCount == 2)
    }

    @Test("a failure has its own type, and releases its permit")
    func failure() async {
        let limiter = ConcurrencyLimiter(limit: 1)
        let loader = ConcurrencyLimitingLoadable(wrapping: script.loader(), limiter: limiter)
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        script.end(1, .failure(Refusal(number: 3)))
        await load.ended
        #expect(loader.currentState.error as? Refusal == Refusal(number: 3))
        #expect(limiter.freeCount == 1)
    }

    @Test("a queued call can be cancelled, and the others keep their order")
    func cancelledCaller() async {
        let limiter = ConcurrencyLimiter(limit: 1)
        let loaders = (0..<3).map { _ in ConcurrencyLimitingLoadable(wrapping: script.loader(), limiter: limiter) }
        var loads: [Task<Void, Never>] = []
        for (index, loader) in loaders.enumerated() {
            loads.append(Task { await loader.load() })
            #expect(
                await eventually { limiter.waitingCount == index && script.open == 1 }, "the load waits, or has started"
            )
        }
        loads[1].cancel()
        await loads[1].ended
        #expect(loaders[1].currentState == .idle)
        #expect(limiter.waitingCount == 1)
        await endFetches(1...2)
        await loads[2].ended
        #expect(loaders[2].currentState == .loaded("r2"))
        #expect(limiter.freeCount == 1)
    }

    @Test("cancel releases all permits and queue entries")
    func cancelling() async {
        let limiter = ConcurrencyLimiter(limit: 2)
        let loader = ConcurrencyLimitingLoadable(wrapping: script.loader(), limiter: limiter)
        let loads = (0..<10).map { _ in Task { await loader.load() } }
        #expect(
            await eventually { script.open == 2 && limiter.waitingCount == 8 },
            "two loads have started, the others wait")
        loader.cancel()
        #expect(loader.currentState == .idle)
        #expect(loader.base.isCanceled)
        for load in loads { await load.ended }
        #expect(limiter.freeCount == 2)
        #expect(limiter.waitingCount == 0)
        loader.reset()
        let again = Task { await loader.load() }
        await endFetches(script.count + 1...script.count + 1)
        await again.ended
        #expect(loader.currentState.value != nil)
    }

    @Test("a limiter is freed after its loads, with its wrapped loader")
    func freed() async {
        var loader: ConcurrencyLimitingLoadable? = ConcurrencyLimitingLoadable(
            wrapping: BlockLoadable { 1 }, concurrencyLimit: 1)
        weak let weakLoader = loader
        weak let base = loader?.base
        await loader!.load()
        loader = nil
        #expect(await eventually { weakLoader == nil && base == nil }, "both are freed")
    }

    @Test("a limit of zero is rejected")
    func noPermits() async {
        await #expect(processExitsWith: .failure) {
            _ = ConcurrencyLimiter(limit: 0)
        }
    }
}
