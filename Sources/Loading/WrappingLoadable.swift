/// What the loaders around another loader have in common.
///
/// `cancel()` and `reset()` go through to the wrapped loader; its progress comes through from there.
public class WrappingLoadable<Base: Loadable>: BaseLoadable<Base.Value> {
    /// The loader that it stands around.
    public let base: Base

    /// Reads the states of a loader that is none of this module; made when that loads for the first time.
    private lazy var reader = StateReader(base)

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

    /// Lets the wrapped loader load and returns what it comes to. Idle, which is to say cancelled, is thrown as a
    /// `CancellationError`.
    func loadBase() async throws -> Base.Value {
        try Task.checkCancellation()
        guard !base.isCanceled else { throw CancellationError() }
        let run = LoadRun.current
        // A loader of this module hands over every state as it changes. Any other is read: some of its last progress may
        // then come after its outcome, and is left out.
        let changes = base as? any StateFollowing<Base.Value> ?? reader
        let (states, newer) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let follower = changes.follow { [weak self] state in
            newer.yield()
            guard case .loading(_?) = state, run?.isCurrent != false else { return }
            self?.updateState(state)
        }
        defer { changes.unfollow(follower) }
        await base.load()
        // The outcome is there; only while somebody has begun a newer load, whose outcome is then ours, it has to be
        // waited for.
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

/// A loader around a closure.
///
///     let loader = BlockLoadable { try await todoList.all() }
public final class BlockLoadable<Value: Hashable & Sendable>: BaseLoadable<Value> {
    private let block: @MainActor () async throws -> Value

    /// - Parameter block: what ``fetch()`` calls, on the main actor, once for each load.
    public init(_ block: @escaping @MainActor () async throws -> Value) { self.block = block }

    /// Calls the closure.
    public override func fetch() async throws -> Value { try await block() }
}
