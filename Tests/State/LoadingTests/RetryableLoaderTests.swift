import Relays
import TestSupport
import Testing

@testable import Loading

@Suite(.timeLimit(.minutes(5))) @MainActor struct RetryableLoaderTests {
    private let script = Script()
    private let clock = ManualClock()

    private func failed(_ number: Int) async {
        #expect(await eventually { script.isOpen(number) }, "fetch \(number) has begun")
        script.end(number, .failure(Refusal(number: number)))
    }

    private func waited(_ duration: Duration) async {
        #expect(await eventually { clock.sleeperCount == 1 }, "the loader waits")
        clock.advance(by: duration)
    }

    @Test("load() returns after the attempt that succeeds, and publishes the attempts")
    func success() async {
        let loader = RetryableLoader(wrapping: script.loader(), maxAttempts: 3, clock: clock)
        let observer = Observer(loader)
        let load = Task { await loader.load() }
        await failed(1)
        await waited(.seconds(1))
        await failed(2)
        await waited(.seconds(2))
        #expect(await eventually { script.isOpen(3) }, "the third fetch has begun")
        script.end(3, .value("r3"))
        await load.ended
        #expect(loader.currentState == .loaded("r3"))
        #expect(await eventually { observer.seen.last == .loaded("r3") }, "the observer has seen the end")
        #expect(observer.messages == ["Retrying… (attempt 2 of 3)", "Retrying… (attempt 3 of 3)"])
        #expect(observer.seen.allSatisfy { $0.error == nil })
    }

    @Test("the message between attempts is configurable")
    func message() async {
        let loader = RetryableLoader(
            wrapping: script.loader(), maxAttempts: 2, clock: clock, message: { "Versuch \($0) von \($1)" })
        let observer = Observer(loader)
        let load = Task { await loader.load() }
        await failed(1)
        await waited(.seconds(1))
        #expect(await eventually { script.isOpen(2) }, "the second fetch has begun")
        script.end(2, .value("r2"))
        await load.ended
        #expect(await eventually { observer.seen.last == .loaded("r2") }, "the observer has seen the end")
        #expect(observer.messages == ["Versuch 2 von 2"])
    }

    @Test("the waits are a second, two seconds, and so on: no attempt starts earlier")
    func waits() async {
        let loader = RetryableLoader(wrapping: script.loader(), maxAttempts: 3, clock: clock)
        let load = Task { await loader.load() }
        await failed(1)
        await waited(.milliseconds(999))
        await settle()
        #expect(script.count == 1)
        clock.advance(by: .milliseconds(1))
        await failed(2)
        await waited(.milliseconds(1_999))
        await settle()
        #expect(script.count == 2)
        clock.advance(by: .milliseconds(1))
        await failed(3)
        await load.ended
    }

    @Test("after the last attempt the failure stays, and the next load() has all its attempts again")
    func exhaustion() async {
        let loader = RetryableLoader(wrapping: script.loader(), maxAttempts: 2, clock: clock)
        for round in [0, 2] {
            let load = Task { await loader.load() }
            await failed(round + 1)
            await waited(.seconds(1))
            await failed(round + 2)
            await load.ended
            #expect(loader.currentState == .failure(Refusal(number: round + 2)))
        }
        #expect(script.count == 4)
    }

    @Test("an error that permits no retry is the outcome")
    func selective() async {
        let loader = RetryableLoader(
            wrapping: script.loader(), maxAttempts: 5, clock: clock,
            shouldRetry: { ($0 as? Refusal)?.number == 1 })
        let load = Task { await loader.load() }
        await failed(1)
        await waited(.seconds(1))
        await failed(2)
        await load.ended
        #expect(loader.currentState == .failure(Refusal(number: 2)))
    }

    @Test("progress of every attempt is published, including retried ones")
    func progress() async {
        let base = Stepwise()
        let loader = RetryableLoader(wrapping: base, maxAttempts: 3, clock: clock)
        let observer = Observer(loader)
        let load = Task { await loader.load() }
        await waited(.seconds(1))
        await load.ended
        #expect(await eventually { observer.seen.last == .loaded(2) }, "the observer has seen the end")
        #expect(observer.messages == ["step of 1", "Retrying… (attempt 2 of 3)", "step of 2"])
    }

    @Test("progress of a loader of another kind is published too")
    func foreignProgress() async {
        let base = ForeignLoader()
        let loader = RetryableLoader(wrapping: base, clock: clock)
        let load = Task { await loader.load() }
        #expect(
            await eventually { loader.currentState == .loading(LoadingProgress(message: "half")) },
            "progress was published")
        base.finish.update(true)
        await load.ended
        #expect(loader.currentState == .loaded(5))
    }

    @Test("cancel ends the wait between attempts")
    func cancelWhileWaiting() async {
        let loader = RetryableLoader(wrapping: script.loader(), clock: clock)
        let load = Task { await loader.load() }
        await failed(1)
        #expect(await eventually { clock.sleeperCount == 1 }, "the loader waits")
        loader.cancel()
        #expect(loader.currentState == .idle)
        #expect(loader.base.isCanceled)
        await load.ended
        #expect(clock.sleeperCount == 0)
        #expect(script.count == 1)
    }

    @Test("a newer load ends the wait of an older one")
    func newerWhileWaiting() async {
        let loader = RetryableLoader(wrapping: script.loader(), clock: clock)
        let first = Task { await loader.load() }
        await failed(1)
        #expect(await eventually { clock.sleeperCount == 1 }, "the loader waits")
        let second = Task { await loader.load() }
        await first.ended
        #expect(clock.sleeperCount == 0)
        #expect(await eventually { script.isOpen(2) }, "the second fetch has begun")
        script.end(2, .value("r2"))
        await second.ended
        #expect(loader.currentState == .loaded("r2"))
        #expect(script.count == 2)
    }

    @Test("reset returns to idle, also in the middle of an attempt")
    func resetting() async {
        let loader = RetryableLoader(wrapping: script.loader(), clock: clock)
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        loader.reset()
        await load.ended
        #expect(loader.currentState == .idle)
        #expect(loader.base.currentState == .idle)
        #expect(script.cancelled == [1])
        #expect(script.count == 1)
    }

    @Test("a loader is freed after its load, with its wrapped loader")
    func freed() async {
        var loader: RetryableLoader? = RetryableLoader(wrapping: BlockLoadable { 1 }, clock: clock)
        weak let weakLoader = loader
        weak let base = loader?.base
        await loader!.load()
        loader = nil
        #expect(await eventually { weakLoader == nil && base == nil }, "both are freed")
    }

    @Test("waits double up to the limit, however many attempts there are")
    func backoff() {
        let backoff = RetryBackoff(first: .seconds(1), limit: .seconds(60))
        #expect((1...8).map { backoff.delay(beforeAttempt: $0) } == [0, 1, 2, 4, 8, 16, 32, 60].map { .seconds($0) })
        for attempt in [66, 1_000, Int.max] { #expect(backoff.delay(beforeAttempt: attempt) == .seconds(60)) }
        #expect(RetryBackoff(first: .zero).delay(beforeAttempt: .max) == .zero)
        let long = RetryBackoff(first: .seconds(Int64.max / 2), limit: .seconds(Int64.max))
        #expect(long.delay(beforeAttempt: .max) == .seconds(Int64.max))
    }

    @Test("a load without attempts is rejected")
    func noAttempts() async {
        await #expect(processExitsWith: .failure) { @MainActor in
            _ = RetryableLoader(wrapping: BlockLoadable { 1 }, maxAttempts: 0)
        }
    }

    /// Fails the first time.
    private final class Stepwise: BaseLoadable<Int> {
        var count = 0

        override func fetch() async throws -> Int {
            count += 1
            updateState(.loading(LoadingProgress(message: "step of \(count)")))
            if count == 1 { throw Refusal() }
            return count
        }
    }
}
