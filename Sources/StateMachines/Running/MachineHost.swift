/// Runs a reducer off the main actor: in servers, tools and tests.
///
/// When the host is released, its effects are cancelled.
public actor MachineHost<State: Sendable, Action: Sendable> {
    /// The state after the last action; ``states()`` tells of each change.
    public private(set) var state: State
    private let machine: EmbeddedMachine<State, Action>
    private var watchers: [UInt64: AsyncStream<State>.Continuation] = [:]
    private var lastWatcher: UInt64 = 0

    /// - Parameter prepare: replaces dependencies for the reducer and its effects.
    public init<R: Reducer>(
        initialState: State, @ReducerBuilder<State, Action> reducer: () -> R,
        withDependencies prepare: (inout DependencyValues) -> Void = { _ in }
    ) where R.State == State, R.Action == Action {
        state = initialState
        let values = DependencyValues.current.changed(by: prepare)
        let reducer = DependencyValues.$current.withValue(values) { reducer() }
        machine = EmbeddedMachine(dependencies: values) { reducer.reduce(into: &$0, action: $1) }
    }

    deinit {
        for watcher in watchers.values { watcher.finish() }
    }

    /// Reduces an action and starts its effects.
    @discardableResult
    public func send(_ action: Action) -> StoreTask {
        let task = machine.send(action, to: &state) { [weak self] action in _ = await self?.send(action) }
        for watcher in watchers.values { watcher.yield(state) }
        return task
    }

    /// The state now and after each action; a slow reader gets the newest one. It ends when the host is released.
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
public typealias MachineHostOf<R: Reducer> = MachineHost<R.State, R.Action> where R.State: Sendable
