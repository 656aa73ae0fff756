import TestSupport
import Testing

@testable import Loading

@Suite(.timeLimit(.minutes(5))) @MainActor struct DebouncingLoadableTests {
    private let script = Script()
    private let clock = ManualClock()

    private func debouncer(executeFirstImmediately: Bool = false) -> DebouncingLoadable<BlockLoadable<String>> {
        DebouncingLoadable(
            wrapping: script.loader(), debounceInterval: .milliseconds(300),
            executeFirstImmediately: executeFirstImmediately, clock: clock)
    }

    private func opened(_ number: Int) async {
        #expect(await eventually { script.isOpen(number) }, "fetch \(number) has begun")
    }
    private func timerRuns() async { #expect(await eventually { clock.sleeperCount == 1 }, "the timer runs") }

    @Test("many quick calls load once, after the interval, and all return with the outcome")
    func joining() async {
        let loader = debouncer()
        var loads: [Task<LoadingState<String>, Never>] = []
        for _ in 0..<3 {
            loads.append(
                Task {
                    await loader.load()
                    return loader.currentState
                })
            await settle()
            clock.advance(by: .milliseconds(200))
        }
        await settle()
        #expect(script.count == 0)
        #expect(loader.currentState == .idle)
        clock.advance(by: .milliseconds(100))
        await opened(1)
        #expect(loader.currentState == .loading(nil))
        script.end(1, .value("r1"))
        for load in loads { #expect(await load.ended == .loaded("r1")) }
        #expect(script.count == 1)
    }

    @Test("with the first call at once, quick calls 30 ms apart load once in all")
    func leading() async throws {
        let loader = debouncer(executeFirstImmediately: true)
        var loads: [Task<Void, Never>] = []
        for _ in 0..<3 {
            loads.append(Task { await loader.load() })
            await opened(1)
            clock.advance(by: .milliseconds(30))
        }
        await settle()
        try #require(script.count == 1)
        script.end(1, .value("r1"))
        for load in loads { await load.ended }
        clock.advance(by: .seconds(10))
        await settle()
        #expect(script.count == 1)
        #expect(loader.currentState == .loaded("r1"))
    }

    @Test("with the first call at once, a call after the interval loads at once again")
    func leadingAgain() async throws {
        let loader = debouncer(executeFirstImmediately: true)
        for number in 1...2 {
            let load = Task { await loader.load() }
            await opened(number)
            script.end(number, .value("r\(number)"))
            await load.ended
            let quick = Task { await loader.load() }
            await settle()
            try #require(script.count == number)
            await quick.ended
            clock.advance(by: .milliseconds(300))
        }
        #expect(loader.currentState == .loaded("r2"))
    }

    @Test("with the first call at once, a call after a failure loads after the interval")
    func leadingFailure() async {
        let loader = debouncer(executeFirstImmediately: true)
        let first = Task { await loader.load() }
        await opened(1)
        script.end(1, .failure(Refusal()))
        await first.ended
        let second = Task { await loader.load() }
        await timerRuns()
        #expect(script.count == 1)
        clock.advance(by: .milliseconds(300))
        await opened(2)
        script.end(2, .value("r2"))
        await second.ended
        #expect(loader.currentState == .loaded("r2"))
    }

    @Test("a call during a load replaces it after the interval, and no failure is published")
    func duringLoad() async {
        let loader = debouncer()
        let observer = Observer(loader)
        let first = Task { await loader.load() }
        await timerRuns()
        clock.advance(by: .milliseconds(300))
        await opened(1)
        let second = Task { await loader.load() }
        await timerRuns()
        #expect(script.cancelled.isEmpty)
        clock.advance(by: .milliseconds(300))
        await opened(2)
        #expect(await eventually { script.cancelled == [1] }, "the older fetch is cancelled")
        script.end(2, .value("r2"))
        await second.ended
        await first.ended
        #expect(await eventually { observer.seen.last == .loaded("r2") }, "the observer has seen the end")
        #expect(observer.seen == [.idle, .loading(nil), .loaded("r2")])
    }

    @Test("two observers see all states each")
    func twoObservers() async {
        let loader = debouncer()
        let observers = [Observer(loader), Observer(loader)]
        #expect(await eventually { observers.allSatisfy { $0.seen == [.idle] } }, "both read")
        let load = Task { await loader.load() }
        await timerRuns()
        clock.advance(by: .milliseconds(300))
        await opened(1)
        script.end(1, .value("r1"))
        await load.ended
        for observer in observers {
            #expect(
                await eventually { observer.seen == [.idle, .loading(nil), .loaded("r1")] }, "the observer has seen all"
            )
        }
    }

    @Test("a cancelled caller leaves the load to the others; the last one stops it")
    func cancelledCallers() async {
        let loader = debouncer()
        let first = Task { await loader.load() }
        await timerRuns()
        let second = Task { await loader.load() }
        await settle()
        clock.advance(by: .milliseconds(300))
        await opened(1)
        first.cancel()
        await first.ended
        #expect(script.isOpen(1))
        second.cancel()
        await second.ended
        #expect(await eventually { script.cancelled == [1] && loader.currentState == .idle }, "the fetch is cancelled")
    }

    @Test("cancel and reset end the interval and reach the wrapped loader", arguments: [true, false])
    func cancelWhileWaiting(byReset: Bool) async {
        let loader = debouncer()
        let load = Task { await loader.load() }
        await timerRuns()
        if byReset { loader.reset() } else { loader.cancel() }
        await load.ended
        #expect(loader.isCanceled == !byReset)
        #expect(loader.base.isCanceled == !byReset)
        clock.advance(by: .seconds(10))
        await settle()
        #expect(script.count == 0)
        #expect(clock.sleeperCount == 0)
    }

    @Test("a debouncer is freed after its load")
    func freed() async {
        var loader: DebouncingLoadable? = DebouncingLoadable(
            wrapping: BlockLoadable { 1 }, executeFirstImmediately: true, clock: clock)
        weak let weakLoader = loader
        await loader!.load()
        #expect(loader?.currentState == .loaded(1))
        loader = nil
        #expect(await eventually { weakLoader == nil }, "the debouncer is freed")
    }

    @Test("an interval may be a number of seconds")
    func seconds() async {
        let loader = DebouncingLoadable(wrapping: script.loader(), debounceInterval: 0.3, clock: clock)
        let load = Task { await loader.load() }
        #expect(await eventually { clock.sleeperCount == 1 }, "the interval begins")
        clock.advance(by: .milliseconds(299))
        await settle()
        #expect(script.count == 0)
        clock.advance(by: .milliseconds(1))
        #expect(await eventually { script.count == 1 }, "it loads")
        script.end(1, .value("a"))
        await load.ended
        #expect(RetryBackoff(first: 0.5, limit: 2) == RetryBackoff(first: .milliseconds(500), limit: .seconds(2)))
    }
}
