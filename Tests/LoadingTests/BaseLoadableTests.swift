import Observation
import Testing

@testable import Loading

@Suite(.timeLimit(.minutes(2))) @MainActor struct BaseLoadableTests {
    private let script = Script()

    @Test("a load goes from idle over loading to loaded")
    func loading() async {
        let loader = script.loader()
        let observer = Observer(loader)
        await eventually("the observer reads") { observer.seen == [.idle] }
        let load = Task { await loader.load() }
        await eventually("the fetch has begun") { script.isOpen(1) }
        #expect(loader.currentState == .loading(nil))
        script.end(1, .value("r1"))
        await load.value
        #expect(loader.currentState == .loaded("r1"))
        await eventually("the observer has seen it all") { observer.seen == [.idle, .loading(nil), .loaded("r1")] }
    }

    @Test("a load that fails ends in failure, with the error itself")
    func failing() async {
        let loader = script.loader()
        let load = Task { await loader.load() }
        await eventually("the fetch has begun") { script.isOpen(1) }
        script.end(1, .failure(Refusal(number: 7)))
        await load.value
        #expect(loader.currentState.error as? Refusal == Refusal(number: 7))
    }

    @Test("an empty result is a result")
    func emptyResult() async {
        let loader = BlockLoadable<[Int]> { [] }
        await loader.load()
        #expect(loader.currentState == .loaded([]))
    }

    @Test("what a fetch comes to after cancel and reset is dropped")
    func staleAfterReset() async {
        let script = Script(heedsCancellation: false)
        let loader = script.loader()
        let load = Task { await loader.load() }
        await eventually("the fetch has begun") { script.isOpen(1) }
        loader.cancel()
        loader.reset()
        #expect(loader.currentState == .idle)
        script.end(1, .value("r1"))
        await load.value
        #expect(loader.currentState == .idle)
    }

    @Test("cancel publishes idle at once, cancels the fetch, and lasts until reset")
    func cancelling() async {
        let loader = script.loader()
        let load = Task { await loader.load() }
        await eventually("the fetch has begun") { script.isOpen(1) }
        loader.cancel()
        #expect(loader.currentState == .idle)
        #expect(loader.isCanceled)
        await load.value
        #expect(script.cancelled == [1])
        await loader.load()
        #expect(script.count == 1)
        loader.reset()
        #expect(!loader.isCanceled)
        let again = Task { await loader.load() }
        await eventually("the fetch has begun") { script.isOpen(2) }
        script.end(2, .value("r2"))
        await again.value
        #expect(loader.currentState == .loaded("r2"))
    }

    @Test("cancel leaves an outcome that is there; reset forgets it")
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
        await eventually("the first fetch has begun") { script.isOpen(1) }
        let second = Task { await loader.load() }
        await eventually("the second fetch has begun") { script.isOpen(2) }
        script.end(2, .value("r2"))
        await second.value
        script.end(1, .value("r1"))
        await first.value
        #expect(loader.currentState == .loaded("r2"))

        let third = Task { await loader.load() }
        await eventually("the third fetch has begun") { script.isOpen(3) }
        let fourth = Task { await loader.load() }
        await eventually("the fourth fetch has begun") { script.isOpen(4) }
        script.end(3, .failure(Refusal()))
        await third.value
        #expect(loader.currentState == .loading(nil))
        script.end(4, .value("r4"))
        await fourth.value
        await eventually("the observer has seen it all") { observer.seen.last == .loaded("r4") }
        #expect(!observer.seen.contains(.loaded("r1")))
        #expect(observer.seen.allSatisfy { $0.error == nil })
    }

    @Test("cancelling the calling task cancels the fetch and is no failure")
    func cancelledCaller() async {
        let loader = script.loader()
        let observer = Observer(loader)
        let load = Task { await loader.load() }
        await eventually("the fetch has begun") { script.isOpen(1) }
        load.cancel()
        await load.value
        #expect(loader.currentState == .idle)
        #expect(!loader.isCanceled)
        #expect(script.cancelled == [1])
        await settle()
        #expect(observer.seen.allSatisfy { $0.error == nil })
    }

    @Test("a value that a fetch comes to although its caller was cancelled is kept")
    func cancelledCallerWithValue() async {
        let script = Script(heedsCancellation: false)
        let loader = script.loader()
        let load = Task { await loader.load() }
        await eventually("the fetch has begun") { script.isOpen(1) }
        load.cancel()
        script.end(1, .value("r1"))
        await load.value
        #expect(loader.currentState == .loaded("r1"))
    }

    @Test("progress is published while the fetch counts, and not any more once it was cancelled")
    func progress() async {
        let loader = Reporting()
        let observer = Observer(loader)
        loader.script = Script(heedsCancellation: false)
        let load = Task { await loader.load() }
        await eventually("the fetch has begun") { loader.script.isOpen(1) }
        #expect(loader.currentState == .loading(LoadingProgress(percent: 10)))
        loader.cancel()
        loader.script.end(1, .value("r1"))
        await load.value
        #expect(loader.currentState == .idle)
        await settle()
        #expect(!observer.seen.contains(.loading(LoadingProgress(percent: 90))))
    }

    @Test("two calls of loadIfNotLoading at once load once")
    func loadIfNotLoading() async {
        let loader = script.loader()
        let first = Task { await loader.loadIfNotLoading() }
        let second = Task { await loader.loadIfNotLoading() }
        await eventually("a fetch has begun") { script.isOpen(1) }
        await second.value
        script.end(1, .value("r1"))
        await first.value
        #expect(script.count == 1)
        #expect(loader.currentState == .loaded("r1"))
    }

    @Test("the current state is observable")
    func observation() async {
        let loader = BlockLoadable { 1 }
        let changes = Tally()
        withObservationTracking {
            _ = loader.currentState
        } onChange: {
            changes.enter()
        }
        await loader.load()
        #expect(changes.count == 1)
    }

    @Test("a loader is freed after its load, and its streams end")
    func freed() async {
        var loader: BlockLoadable<Int>? = BlockLoadable { 1 }
        weak let weakLoader = loader
        let observer = Observer(loader!)
        await loader!.load()
        loader = nil
        await eventually("the loader is freed") { weakLoader == nil }
        await eventually("the observer's stream ends") { observer.hasEnded }
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
