public import Observation

/// Runs a reducer on the main actor, for views: stores the state, accepts actions and runs effects.
///
/// State that is read inside `withObservationTracking`, or a view, is observed. When the store is released, its
/// effects are cancelled.
@MainActor
@dynamicMemberLookup
public final class Store<State, Action: Sendable>: Observable {
    private let read: () -> State
    private let perform: (Action) -> StoreTask
    let observers: StateObservers<State>

    /// Creates a store.
    ///
    /// - Parameter prepare: replaces dependencies for the reducer and its effects.
    public init<R: Reducer>(
        initialState: @autoclosure () -> State, @ReducerBuilder<State, Action> reducer: () -> R,
        withDependencies prepare: (inout DependencyValues) -> Void = { _ in }
    ) where R.State == State, R.Action == Action {
        let values = DependencyValues.current.changed(by: prepare)
        let observers = StateObservers<State>()
        let core = DependencyValues.$current.withValue(values) {
            StoreCore(state: initialState(), reducer: reducer(), dependencies: values, observers: observers)
        }
        self.observers = observers
        read = { core.state }
        perform = { core.send($0, in: nil) }
    }

    private init(
        read: @escaping () -> State, perform: @escaping (Action) -> StoreTask, observers: StateObservers<State>
    ) {
        self.read = read
        self.perform = perform
        self.observers = observers
    }

    /// The whole state. Its observers are notified of each change.
    public var state: State {
        observers.access(\State.self)
        return read()
    }

    /// Reads the state without observing it.
    public func withState<Result>(_ read: (State) throws -> Result) rethrows -> Result {
        try read(self.read())
    }

    /// Reduces an action and starts its effects.
    ///
    /// An action sent from within a reducer, or by an observer during a notification, is reduced next; the returned
    /// task waits for that, too.
    @discardableResult
    public func send(_ action: Action) -> StoreTask { perform(action) }

    /// Returns a store for a part of the state and its actions. It keeps this one alive.
    public func scope<ChildState, ChildAction>(
        state: KeyPath<State, ChildState>, action: CaseKeyPath<Action, ChildAction>
    ) -> Store<ChildState, ChildAction> {
        let action = AnyCasePath(action)
        return scope(state: state) { action.embed($0) }
    }

    func scope<ChildState, ChildAction>(
        state: KeyPath<State, ChildState>, embed: @escaping (ChildAction) -> Action
    ) -> Store<ChildState, ChildAction> {
        let childObservers = StateObservers<ChildState>()
        observers.addChild(childObservers) { $0[keyPath: state] }
        return Store<ChildState, ChildAction>(
            read: { [read] in read()[keyPath: state] }, perform: { self.send(embed($0)) },
            observers: childObservers)
    }
}

extension Store where Action: CasePathable {
    /// Sends the action of a case path without a payload: `send(\.tap)`.
    @discardableResult
    public func send(_ path: CaseKeyPath<Action, Void>) -> StoreTask { send(AnyCasePath(path).embed(())) }

    /// Sends the action of a case path with a payload: `send(\.rows[id: 1].rename, "a")`.
    @discardableResult
    public func send<Value>(_ path: CaseKeyPath<Action, Value>, _ value: Value) -> StoreTask {
        send(AnyCasePath(path).embed(value))
    }
}

extension Store where State: ObservableState {
    /// A property of the state. Its observers are notified when it has changed.
    public subscript<Value>(dynamicMember path: KeyPath<State, Value>) -> Value {
        observers.access(path)
        return read()[keyPath: path]
    }
}

/// The state of a store and all its scopes, and the machine that changes it.
@MainActor
private final class StoreCore<State, Action: Sendable> {
    private(set) var state: State
    private let machine: EmbeddedReducer<State, Action>
    private let observers: StateObservers<State>
    private var isNotifying = false
    /// The actions that observers sent during a notification.
    private var deferred: [QueuedAction<Action>] = []
    private var hasDeferred = false
    private lazy var deliver: Deliver<Action> = { [weak self] action, lifetime in
        await self?.receive(action, lifetime)
        return nil
    }

    init<R: Reducer>(
        state: State, reducer: R, dependencies: DependencyValues, observers: StateObservers<State>
    ) where R.State == State, R.Action == Action {
        self.state = state
        self.observers = observers
        machine = EmbeddedReducer(dependencies: dependencies) { reducer.reduce(into: &$0, action: $1) }
    }

    func send(_ action: Action, in group: EffectGroup?) -> StoreTask {
        if machine.isReducing { return machine.enqueue(action, in: group) }
        if isNotifying {
            let group = group ?? EffectGroup(of: machine.effects, isDeferred: true)
            deferred.append(QueuedAction(action, group))
            hasDeferred = true
            return StoreTask(group)
        }
        let task = reduce(action, in: group)
        while hasDeferred {
            let next = deferred.removeFirst()
            hasDeferred = !deferred.isEmpty
            _ = reduce(next.action, in: next.group)
            next.markReduced()
        }
        return task
    }

    private func receive(_ action: Action, _ lifetime: EffectLifetime) {
        // Checked here: it may have been cancelled on the way.
        if !lifetime.isOver { _ = send(action, in: lifetime.group) }
    }

    private func reduce(_ action: Action, in group: EffectGroup?) -> StoreTask {
        // Without observers the state changes in place, so that an array in it is not copied.
        if observers.isEmpty { return machine.send(action, to: &state, in: group) { deliver } }
        var new = state
        let task = machine.send(action, to: &new, in: group) { deliver }
        let signals = observers.changes(from: state, to: new)
        isNotifying = true
        for signal in signals { signal.willChange() }
        state = new
        for signal in signals { signal.didChange() }
        isNotifying = false
        return task
    }
}

/// The store of a reducer.
public typealias StoreOf<R: Reducer> = Store<R.State, R.Action>
