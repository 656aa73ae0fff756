/// What the loaders around another loader have in common.
///
/// `cancel()` and `reset()` go through to the wrapped loader; its progress comes through from there.
public class WrappingLoadable<Base: Loadable>: BaseLoadable<Base.Value> {
    /// The loader that it stands around.
    public let base: Base

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
        let stopForwarding = forwardProgress(of: run)
        defer { stopForwarding() }
        await base.load()
        for await state in base.state {
            switch state {
            case .loaded(let value): return value
            case .failure(let failure): throw failure.error
            case .idle: throw CancellationError()
            case .loading:
                // Somebody has begun a newer load of the wrapped loader: its outcome is ours, if ours is wanted.
                if let run, !run.isCurrent { throw CancellationError() }
            }
        }
        throw CancellationError()
    }

    /// A loader of this module hands over every state as it changes. Any other is read: some of its last progress may
    /// then come after its outcome, and is left out.
    private func forwardProgress(of run: LoadRun?) -> () -> Void {
        let forward = { [weak self] (state: LoadingState<Base.Value>) in
            guard case .loading(_?) = state, run?.isCurrent != false else { return }
            self?.updateState(state)
        }
        if let base = base as? BaseLoadable<Base.Value> {
            let follower = base.follow(forward)
            return { base.unfollow(follower) }
        }
        let states = base.state
        let reader = Task {
            for await state in states { forward(state) }
        }
        return { reader.cancel() }
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
