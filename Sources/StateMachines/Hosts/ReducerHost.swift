/// Runs a reducer off the main actor: in servers, tools and tests.
///
/// When the host is released, its effects are cancelled.
public actor ReducerHost<State: Sendable, Action: Sendable> {
    /// The state after the last action. ``states()`` provides each change.
    public private(set) var state: State
    private let machine: EmbeddedReducer<State, Action>
    private var watchers: [UInt64: AsyncStream<State>.Continuation] = [:]
    private var lastWatcher: UInt64 = 0

    /// Creates a host.
    ///
    /// - Parameters:
    ///   - isolation: The actor whose code creates the host, on which the closures run; leave it out.
    ///   - prepare: replaces dependencies for the reducer and its effects.
    public init<R: Reducer>(
        initialState: State, isolation: isolated (any Actor)? = #isolation,
        @ReducerBuilder<State, Action> reducer: () -> R,
        withDependencies prepare: (inout DependencyValues) -> Void = { _ in }
    ) where R.State == State, R.Action == Action {
        // Runs in the isolation of the caller instead of the host: the closures may belong to another actor.
        let values = DependencyValues.current.changed(by: prepare)
        self.init(initialState, values, DependencyValues.$current.withValue(values) { reducer() })
    }

    private init<R: Reducer>(
        _ state: State, _ dependencies: DependencyValues, _ reducer: R
    ) where R.State == State, R.Action == Action {
        self.state = state
        machine = EmbeddedReducer(dependencies: dependencies) { reducer.reduce(into: &$0, action: $1) }
    }

    deinit {
        for watcher in watchers.values { watcher.finish() }
    }

    /// Reduces an action and starts its effects.
    @discardableResult
    public func send(_ action: Action) -> StoreTask { send(action, in: nil) }

    private func send(_ action: Action, in group: EffectGroup?) -> StoreTask {
        let task = machine.send(action, to: &state, in: group) {
            { [weak self] action, life in
                await self?.receive(action, life)
                return nil
            }
        }
        for watcher in watchers.values { watcher.yield(state) }
        return task
    }

    private func receive(_ action: Action, _ life: EffectLifetime) {
        // Checked here: it may have been cancelled on the way.
        if !life.isOver { _ = send(action, in: life.group) }
    }

    /// Returns a stream of the state now and after each action. A slow reader gets the newest one. It ends when the
    /// host is released.
    public func states() -> AsyncStream<State> {
        lastWatcher += 1
        let number = lastWatcher
        let (stream, watcher) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
        watcher.yield(state)
        watcher.onTermination = { [weak self] _ in
            Task { await self?.removeWatcher(number) }
        }
        watchers[number] = watcher
        return stream
    }

    private func removeWatcher(_ number: UInt64) { watchers[number] = nil }
}

/// The host of a reducer.
public typealias ReducerHostOf<R: Reducer> = ReducerHost<R.State, R.Action> where R.State: Sendable
