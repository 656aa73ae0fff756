import Observation
import TestSupport
import Testing

@testable import Loading

@Suite(.timeLimit(.minutes(5))) @MainActor struct BaseLoadableTests {
    private let script = Script()

    @Test("a load goes from idle through loading to loaded")
    func loading() async {
        let loader = script.loader()
        let observer = Observer(loader)
        #expect(await eventually { observer.seen == [.idle] }, "the observer reads")
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        #expect(loader.currentState == .loading(nil))
        script.end(1, .value("r1"))
        await load.ended
        #expect(loader.currentState == .loaded("r1"))
        #expect(
            await eventually { observer.seen == [.idle, .loading(nil), .loaded("r1")] }, "the observer has seen it all")
    }

    @Test("a failed load ends in failure, with the error itself")
    func failing() async {
        let loader = script.loader()
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        script.end(1, .failure(Refusal(number: 7)))
        await load.ended
        #expect(loader.currentState.error as? Refusal == Refusal(number: 7))
    }

    @Test("an empty result is a result")
    func emptyResult() async {
        let loader = BlockLoadable<[Int]> { [] }
        await loader.load()
        #expect(loader.currentState == .loaded([]))
    }

    @Test("the outcome of a fetch after cancel and reset is dropped")
    func staleAfterReset() async {
        let script = Script(heedsCancellation: false)
        let loader = script.loader()
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        loader.cancel()
        loader.reset()
        #expect(loader.currentState == .idle)
        script.end(1, .value("r1"))
        await load.ended
        #expect(loader.currentState == .idle)
    }

    @Test("cancel publishes idle at once, cancels the fetch, and lasts until reset")
    func cancelling() async {
        let loader = script.loader()
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        loader.cancel()
        #expect(loader.currentState == .idle)
        #expect(loader.isCanceled)
        await load.ended
        #expect(script.cancelled == [1])
        await loader.load()
        #expect(script.count == 1)
        loader.reset()
        #expect(!loader.isCanceled)
        let again = Task { await loader.load() }
        #expect(await eventually { script.isOpen(2) }, "the fetch has begun")
        script.end(2, .value("r2"))
        await again.ended
        #expect(loader.currentState == .loaded("r2"))
    }

    @Test("cancel keeps an existing outcome; reset removes it")
    func cancelAfterwards() async {
        let loader = BlockLoadable { 1 }
        await loader.load()
        loader.cancel()
        #expect(loader.currentState == .loaded(1))
        loader.reset()
        #expect(loader.currentState == .idle)
    }

    @Test("a newer load wins over an older one, whichever ends first")
    func overlapping() async {
        let loader = script.loader()
        let observer = Observer(loader)
        let first = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the first fetch has begun")
        let second = Task { await loader.load() }
        #expect(await eventually { script.isOpen(2) }, "the second fetch has begun")
        script.end(2, .value("r2"))
        await second.ended
        script.end(1, .value("r1"))
        await first.ended
        #expect(loader.currentState == .loaded("r2"))

        let third = Task { await loader.load() }
        #expect(await eventually { script.isOpen(3) }, "the third fetch has begun")
        let fourth = Task { await loader.load() }
        #expect(await eventually { script.isOpen(4) }, "the fourth fetch has begun")
        script.end(3, .failure(Refusal()))
        await third.ended
        #expect(loader.currentState == .loading(nil))
        script.end(4, .value("r4"))
        await fourth.ended
        #expect(await eventually { observer.seen.last == .loaded("r4") }, "the observer has seen it all")
        #expect(!observer.seen.contains(.loaded("r1")))
        #expect(observer.seen.allSatisfy { $0.error == nil })
    }

    @Test("cancellation of the calling task cancels the fetch and is no failure")
    func cancelledCaller() async {
        let loader = script.loader()
        let observer = Observer(loader)
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        load.cancel()
        await load.ended
        #expect(loader.currentState == .idle)
        #expect(!loader.isCanceled)
        #expect(script.cancelled == [1])
        await settle()
        #expect(observer.seen.allSatisfy { $0.error == nil })
    }

    @Test("a value that a fetch returns despite its caller's cancellation is stored")
    func cancelledCallerWithValue() async {
        let script = Script(heedsCancellation: false)
        let loader = script.loader()
        let load = Task { await loader.load() }
        #expect(await eventually { script.isOpen(1) }, "the fetch has begun")
        load.cancel()
        script.end(1, .value("r1"))
        await load.ended
        #expect(loader.currentState == .loaded("r1"))
    }

    @Test("progress is published during a fetch, and not after its cancellation")
    func progress() async {
        let loader = Reporting()
        let observer = Observer(loader)
        loader.script = Script(heedsCancellation: false)
        let load = Task { await loader.load() }
        #expect(await eventually { loader.script.isOpen(1) }, "the fetch has begun")
        #expect(loader.currentState == .loading(LoadingProgress(percent: 10)))
        loader.cancel()
        loader.script.end(1, .value("r1"))
        await load.ended
        #expect(loader.currentState == .idle)
        await settle()
        #expect(!observer.seen.contains(.loading(LoadingProgress(percent: 90))))
    }

    @Test("two concurrent calls of loadIfNotLoading load once")
    func loadIfNotLoading() async {
        let loader = script.loader()
        let first = Task { await loader.loadIfNotLoading() }
        let second = Task { await loader.loadIfNotLoading() }
        #expect(await eventually { script.isOpen(1) }, "a fetch has begun")
        await second.ended
        script.end(1, .value("r1"))
        await first.ended
        #expect(script.count == 1)
        #expect(loader.currentState == .loaded("r1"))
    }

    @Test("the current state is observable")
    func observation() async {
        let loader = BlockLoadable { 1 }
        let changes = TaskCounter()
        withObservationTracking {
            _ = loader.currentState
        } onChange: {
            changes.enter()
        }
        await loader.load()
        #expect(changes.count == 1)
    }

    /// Calls `work` during the first state change of a loader.
    private func onChange(
        of loader: BaseLoadable<some Hashable & Sendable>, _ work: @escaping @MainActor @Sendable () -> Void
    ) {
        withObservationTracking {
            _ = loader.currentState
        } onChange: {
            // Loaders change on the main actor, and notify there.
            MainActor.assumeIsolated { work() }
        }
    }

    @Test("a loader that an observer cancels or resets at its start is idle")
    func stoppedByObserver() async {
        for stop in [{ $0.cancel() }, { $0.reset() }] as [@MainActor @Sendable (BaseLoadable<Int>) -> Void] {
            let loader = BlockLoadable<Int> { 1 }
            onChange(of: loader) { stop(loader) }
            await loader.load()
            await settle()
            #expect(loader.currentState == .idle)
        }
    }

    @Test("a loader that an observer of another one cancels at that one's start is idle, and so is the other")
    func stoppedAround() async {
        let base = BlockLoadable<Int> { 1 }
        let around = RetryableLoader(wrapping: base, maxAttempts: 1)
        onChange(of: base) { around.cancel() }
        await around.load()
        await settle()
        #expect(base.currentState == .idle)
        #expect(around.currentState == .idle)
    }

    @Test("states are published in the order of the changes, also when an observer changes the loader")
    func stateOrder() {
        let loader = BlockLoadable<Int> { 1 }
        var (first, second): ([LoadingState<Int>], [LoadingState<Int>]) = ([], [])
        for _ in 0..<3 {
            _ = loader.addObserver { state in
                first.append(state)
                if state == .loading(nil) { loader.updateState(.loaded(1)) }
            }
        }
        _ = loader.addObserver { second.append($0) }
        loader.updateState(.loading(nil))
        #expect(first == [.loading(nil), .loading(nil), .loading(nil), .loaded(1), .loaded(1), .loaded(1)])
        #expect(second == [.loading(nil), .loaded(1)])
        #expect(loader.currentState == .loaded(1))
    }

    @Test("a loader is freed after its load, and its streams end")
    func freed() async {
        var loader: BlockLoadable<Int>? = BlockLoadable { 1 }
        weak let weakLoader = loader
        let observer = Observer(loader!)
        await loader!.load()
        loader = nil
        #expect(await eventually { weakLoader == nil }, "the loader is freed")
        #expect(await eventually { observer.hasEnded }, "the observer's stream ends")
        #expect(observer.seen.last == .loaded(1))
    }

    private final class Reporting: BaseLoadable<String> {
        var script = Script()

        override func fetch() async throws -> String {
            updateState(.loading(LoadingProgress(percent: 10)))
            let value = try await script.fetch()
            updateState(.loading(LoadingProgress(percent: 90)))
            return value
        }
    }
}
