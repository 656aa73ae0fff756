import Loading
import TestSupport
import Testing

/// A loader with a single stored stream of its states, for one reader.
@MainActor
private final class SingleStreamLoader: Loadable {
    let state: any AsyncSequence<LoadingState<String>, Never>
    private let continuation: AsyncStream<LoadingState<String>>.Continuation
    private(set) var currentState = LoadingState<String>.idle
    private(set) var isCanceled = false
    private(set) var loadCount = 0
    private let failures: Int

    init(failures: Int = 0) {
        let (stream, continuation) = AsyncStream.makeStream(of: LoadingState<String>.self)
        state = stream
        self.continuation = continuation
        self.failures = failures
        continuation.yield(.idle)
    }

    func cancel() {
        isCanceled = true
        show(.idle)
    }

    func reset() {
        isCanceled = false
        show(.idle)
    }

    func load() async {
        loadCount += 1
        show(.loading(nil))
        show(.loading(LoadingProgress(message: "part \(loadCount)")))
        show(loadCount > failures ? .loaded("value \(loadCount)") : .failure(Broken()))
    }

    private func show(_ new: LoadingState<String>) {
        currentState = new
        continuation.yield(new)
    }

    struct Broken: Error, Equatable {}
}

@Suite("Wrappers of a loader with one stored stream", .timeLimit(.minutes(5)))
@MainActor
struct StoredStreamTests {
    @Test("each wrapper loads at every request")
    func loads() async {
        let clock = ManualClock()
        let wrappers: [any Loadable<String>] = [
            ConcurrencyLimitingLoadable(wrapping: SingleStreamLoader(), concurrencyLimit: 1),
            RetryableLoader(wrapping: SingleStreamLoader(), clock: clock),
            DebouncingLoadable(wrapping: SingleStreamLoader(), executeFirstImmediately: true, clock: clock),
        ]
        for wrapper in wrappers {
            await wrapper.load()
            #expect(wrapper.currentState == .loaded("value 1"))
            wrapper.reset()
            await wrapper.load()
            #expect(wrapper.currentState == .loaded("value 2"))
            wrapper.cancel()
        }
    }

    @Test("a retry tries again after a failure")
    func retry() async {
        let base = SingleStreamLoader(failures: 2)
        let loader = RetryableLoader(
            wrapping: base, maxAttempts: 3, backoff: RetryBackoff(first: .zero, limit: .zero))
        await loader.load()
        #expect(loader.currentState == .loaded("value 3"))
        #expect(base.loadCount == 3)
    }

    @Test("a failure is published, and a later load succeeds")
    func failure() async {
        let loader = ConcurrencyLimitingLoadable(wrapping: SingleStreamLoader(failures: 1), concurrencyLimit: 1)
        await loader.load()
        #expect(loader.currentState == .failure(SingleStreamLoader.Broken()))
        await loader.load()
        #expect(loader.currentState == .loaded("value 2"))
    }

    @Test("the stream is released with the wrapper")
    func release() async {
        weak var base: SingleStreamLoader?
        do {
            let loader = ConcurrencyLimitingLoadable(wrapping: SingleStreamLoader(), concurrencyLimit: 1)
            base = loader.base
            await loader.load()
        }
        #expect(await eventually { base == nil }, "the loader is freed")
    }
}
