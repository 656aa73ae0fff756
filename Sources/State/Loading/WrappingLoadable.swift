/// The common base of loaders that wrap another loader.
///
/// `cancel()` and `reset()` are forwarded to the wrapped loader; its progress is forwarded to this one.
public class WrappingLoadable<Base: Loadable>: BaseLoadable<Base.Value> {
    /// The wrapped loader.
    public let base: Base

    /// Reads the states of a loader from outside this module; created at its first load.
    private lazy var reader = LoadingStateReader(base)

    init(wrapping base: Base) { self.base = base }

    /// Cancels this loader and ``base``.
    public override func cancel() {
        super.cancel()
        base.cancel()
    }

    /// Resets this loader and ``base``.
    public override func reset() {
        super.reset()
        base.reset()
    }

    /// Loads the wrapped loader and returns its outcome. Idle, which means cancelled, is thrown as a
    /// `CancellationError`.
    func loadBase() async throws -> Base.Value {
        try Task.checkCancellation()
        guard !base.isCanceled else { throw CancellationError() }
        let run = LoadOperation.current
        // A loader of this module passes every state on as it changes. Any other is read: some of its last progress
        // may then come after its outcome, and is dropped.
        let changes = base as? any LoadingStateSource<Base.Value> ?? reader
        let (states, newer) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let observer = changes.addObserver { [weak self] state in
            newer.yield()
            guard case .loading(_?) = state, run?.isCurrent != false else { return }
            self?.updateState(state)
        }
        defer { changes.removeObserver(observer) }
        await base.load()
        // The outcome exists by now, unless other code has begun a newer load. Then that outcome is ours, and is
        // awaited.
        var waiting = states.makeAsyncIterator()
        while base.currentState.isLoading {
            if let run, !run.isCurrent { throw CancellationError() }
            guard await waiting.next() != nil else { throw CancellationError() }
        }
        switch base.currentState {
        case .loaded(let value): return value
        case .failure(let failure): throw failure.error
        case .idle, .loading: throw CancellationError()
        }
    }
}

/// A loader that calls a closure.
///
///     let loader = BlockLoadable { try await todoList.all() }
public final class BlockLoadable<Value: Hashable & Sendable>: BaseLoadable<Value> {
    private let block: @MainActor () async throws -> Value

    /// Creates a loader.
    ///
    /// - Parameter block: the closure that ``fetch()`` calls, on the main actor, once for each load.
    public init(_ block: @escaping @MainActor () async throws -> Value) { self.block = block }

    /// Calls the closure.
    public override func fetch() async throws -> Value { try await block() }
}
