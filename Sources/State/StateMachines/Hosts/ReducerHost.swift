/// Runs a reducer off the main actor: in servers, tools and tests.
///
/// When the host is released, its effects are cancelled.
public actor ReducerHost<State: Sendable, Action: Sendable> {
    /// The state after the last action. ``states()`` provides each change.
    public private(set) var state: State
    private let machine: EmbeddedReducer<State, Action>
    private var observers: [UInt64: AsyncStream<State>.Continuation] = [:]
    private var lastObserver: UInt64 = 0

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
        for observer in observers.values { observer.finish() }
    }

    /// Reduces an action and starts its effects.
    @discardableResult
    public func send(_ action: Action) -> StoreTask { send(action, in: nil) }

    private func send(_ action: Action, in group: EffectGroup?) -> StoreTask {
        let task = machine.send(action, to: &state, in: group) {
            { [weak self] action, lifetime in
                await self?.receive(action, lifetime)
                return nil
            }
        }
        for observer in observers.values { observer.yield(state) }
        return task
    }

    private func receive(_ action: Action, _ lifetime: EffectLifetime) {
        // Checked here: it may have been cancelled on the way.
        if !lifetime.isOver { _ = send(action, in: lifetime.group) }
    }

    /// Returns a stream of the state now and after each action. A slow reader gets the newest one. It ends when the
    /// host is released.
    public func states() -> AsyncStream<State> {
        lastObserver += 1
        let number = lastObserver
        let (stream, observer) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
        observer.yield(state)
        observer.onTermination = { [weak self] _ in
            Task { await self?.removeObserver(number) }
        }
        observers[number] = observer
        return stream
    }

    private func removeObserver(_ number: UInt64) { observers[number] = nil }
}

/// The host of a reducer.
public typealias ReducerHostOf<R: Reducer> = ReducerHost<R.State, R.Action> where R.State: Sendable
