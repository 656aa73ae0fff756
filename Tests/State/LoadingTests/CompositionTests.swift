import TestSupport
import Testing

@testable import Loading

/// Wrappers around wrappers, in several orders.
@Suite(.timeLimit(.minutes(5))) @MainActor struct CompositionTests {
    private let script = Script()
    private let clock = ManualClock()

    /// Advances the clock whenever a task sleeps, and fails the fetches selected by `fails`, until `done`.
    private func drive(
        failing fails: (Int) -> Bool = { _ in false }, until done: () -> Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        var ended = 0
        let isDone = await eventually {
            if clock.sleeperCount > 0 { clock.advance(by: .milliseconds(50)) }
            if script.isOpen(ended + 1) {
                ended += 1
                script.end(ended, fails(ended) ? .failure(Refusal(number: ended)) : .value("r\(ended)"))
            }
            return done()
        }
        #expect(isDone, "all is done", sourceLocation: sourceLocation)
    }

    private func load(_ loader: some Loadable, failing fails: (Int) -> Bool = { _ in false }) async {
        var isDone = false
        let load = Task {
            await loader.load()
            isDone = true
        }
        await drive(failing: fails, until: { isDone })
        await load.ended
    }

    @Test("retry around debounce tries as often as needed")
    func retryAroundDebounce() async {
        let loader = RetryableLoader(
            wrapping: DebouncingLoadable(wrapping: script.loader(), clock: clock), maxAttempts: 3, clock: clock)
        await load(loader, failing: { $0 < 3 })
        #expect(loader.currentState == .loaded("r3"))
        #expect(script.count == 3)
    }

    @Test("retry around debounce still debounces: quick calls fetch once")
    func debounceInsideRetry() async {
        let loader = RetryableLoader(
            wrapping: DebouncingLoadable(wrapping: script.loader(), clock: clock), clock: clock)
        var done = 0
        let loads = (0..<5).map { _ in
            Task {
                await loader.load()
                done += 1
            }
        }
        await drive(until: { done == 5 })
        for load in loads { await load.ended }
        #expect(loader.currentState == .loaded("r1"))
        #expect(script.count == 1)
    }

    @Test("a limit around retry applies to whole policies")
    func limitAroundRetry() async {
        let limiter = ConcurrencyLimiter(limit: 1)
        let loaders = (0..<3).map { _ in
            ConcurrencyLimitingLoadable(
                wrapping: RetryableLoader(wrapping: script.loader(), maxAttempts: 2, clock: clock), limiter: limiter)
        }
        var done = 0
        let loads = loaders.map { loader in
            Task {
                await loader.load()
                done += 1
            }
        }
        await drive(failing: { !$0.isMultiple(of: 2) }, until: { done == 3 })
        for load in loads { await load.ended }
        #expect(loaders.map(\.currentState.value) == ["r2", "r4", "r6"])
        #expect(script.mostOpen == 1)
    }

    @Test("limit around retry around debounce: states pass from the innermost to the outermost")
    func fullStack() async {
        let debouncing = DebouncingLoadable(wrapping: script.loader(), clock: clock)
        let retrying = RetryableLoader(wrapping: debouncing, maxAttempts: 2, clock: clock)
        let loader = ConcurrencyLimitingLoadable(wrapping: retrying, concurrencyLimit: 1)
        let observer = Observer(loader)
        await load(loader, failing: { $0 == 1 })
        #expect(await eventually { observer.seen.last == .loaded("r2") }, "the observer has seen the end")
        #expect(
            observer.seen == [
                .idle, .loading(nil), .loading(LoadingProgress(message: "Retrying… (attempt 2 of 2)")), .loaded("r2"),
            ])
        #expect(debouncing.currentState == .loaded("r2"))
        #expect(retrying.currentState == .loaded("r2"))
    }

    @Test("debounce around limit around retry fails with the error of the last attempt")
    func otherOrder() async {
        let loader = DebouncingLoadable(
            wrapping: ConcurrencyLimitingLoadable(
                wrapping: RetryableLoader(wrapping: script.loader(), maxAttempts: 2, clock: clock),
                concurrencyLimit: 1),
            clock: clock)
        await load(loader, failing: { _ in true })
        #expect(loader.currentState == .failure(Refusal(number: 2)))
    }

    @Test("cancel and reset reach every layer")
    func cancelAndReset() async {
        let base = script.loader()
        let debouncing = DebouncingLoadable(wrapping: base, executeFirstImmediately: true, clock: clock)
        let retrying = RetryableLoader(wrapping: debouncing, clock: clock)
        let loader = ConcurrencyLimitingLoadable(wrapping: retrying, concurrencyLimit: 1)
        let loading = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        let states = { [base.currentState, debouncing.currentState, retrying.currentState, loader.currentState] }
        let areCanceled = { [base.isCanceled, debouncing.isCanceled, retrying.isCanceled, loader.isCanceled] }
        #expect(states().allSatisfy { $0 == .loading(nil) })
        loader.cancel()
        #expect(states().allSatisfy { $0 == .idle })
        #expect(areCanceled().allSatisfy { $0 })
        await loading.ended
        #expect(script.cancelled == [1])
        loader.reset()
        #expect(areCanceled().allSatisfy { !$0 })
        let again = Task { await loader.load() }
        #expect(await eventually { script.isOpen(2) }, "the second fetch has begun")
        script.end(2, .value("r2"))
        await again.ended
        #expect(states().allSatisfy { $0 == .loaded("r2") })
    }

    @Test("external cancellation of a wrapped loader makes the wrappers idle, without another attempt")
    func cancelledBelow() async {
        let base = script.loader()
        let loader = RetryableLoader(wrapping: base, clock: clock)
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        base.cancel()
        await load.ended
        #expect(loader.currentState == .idle)
        #expect(script.count == 1)
    }

    @Test("a wrapper whose loader was restarted externally waits for the newer outcome")
    func newerBelow() async {
        let base = script.loader()
        let loader = RetryableLoader(wrapping: base, clock: clock)
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        let other = Task { await base.load() }
        #expect(await eventually { script.isOpen(2) }, "the other fetch has begun")
        script.end(1, .value("r1"))
        await settle()
        #expect(loader.currentState == .loading(nil))
        script.end(2, .value("r2"))
        await load.ended
        await other.ended
        #expect(loader.currentState == .loaded("r2"))
    }

    @Test("reset and load in quick succession end with the outcome of the last load")
    func rapidResets() async {
        let loader = ConcurrencyLimitingLoadable(
            wrapping: RetryableLoader(wrapping: script.loader(), clock: clock), concurrencyLimit: 1)
        var loads: [Task<Void, Never>] = []
        for number in 1...20 {
            loader.reset()
            loads.append(Task { await loader.load() })
            #expect(await eventually { script.isOpen(number) }, "fetch \(number) has begun")
        }
        script.end(20, .value("r20"))
        for load in loads { await load.ended }
        #expect(loader.currentState == .loaded("r20"))
        #expect(script.mostOpen == 1)
    }
}
