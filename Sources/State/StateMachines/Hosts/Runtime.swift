/// The store of a state machine for its users: they send inputs, and results stay internal.
public typealias Runtime<SM: StateMachine> = Store<SM.State, SM.Input>
where SM.Action: StateMachineEventConvertible

/// A ``Runtime`` of a machine whose actions are only its events.
public typealias StandardRuntime<SM: StateMachine> = Runtime<SM>
where SM.Action == StateMachineEvent<SM.Input, SM.IOResult>

extension Store {
    /// Runs a state machine, and returns a store of its inputs.
    ///
    ///     let runtime = Store.make(initialState: Door.State()) { Door() }
    ///     runtime.send(.open)
    ///
    /// - Parameter prepare: replaces dependencies for the machine and its effects.
    public static func make<SM: StateMachine>(
        initialState: @autoclosure () -> SM.State, @ReducerBuilder<SM.State, SM.Action> stateMachine: () -> SM,
        withDependencies prepare: (inout DependencyValues) -> Void = { _ in }
    ) -> Runtime<SM>
    where SM.State == State, SM.Action == Action, Action: StateMachineEventConvertible, Action.Input == SM.Input {
        Store(initialState: initialState(), reducer: stateMachine, withDependencies: prepare)
            .scope(state: \.self) { Action.input($0) }
    }
}

/// Creates runtimes of an explicit machine type: `Runtimes<EntryRequestActor>.make(initialState: .init()) { EntryRequestActor() }`.
public enum Runtimes<SM: StateMachine>
where SM.Action: StateMachineEventConvertible, SM.Action.Input == SM.Input, SM.Action.IOResult == SM.IOResult {
    /// Runs the machine, and returns a store of its inputs.
    ///
    /// - Parameter prepare: replaces dependencies for the machine and its effects.
    @MainActor
    public static func make(
        initialState: @autoclosure () -> SM.State, @ReducerBuilder<SM.State, SM.Action> stateMachine: () -> SM,
        withDependencies prepare: (inout DependencyValues) -> Void = { _ in }
    ) -> Runtime<SM> {
        Store<SM.State, SM.Action>.make(
            initialState: initialState(), stateMachine: stateMachine, withDependencies: prepare)
    }
}

/// ``Runtimes`` of a machine whose actions are only its events.
public typealias StandardRuntimes<SM: StateMachine> = Runtimes<SM>
where SM.Action == StateMachineEvent<SM.Input, SM.IOResult>
