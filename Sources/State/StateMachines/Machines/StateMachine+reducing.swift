extension StateMachine
where Action: StateMachineEventConvertible, Action.Input == Input, Action.IOResult == IOResult {
    /// Returns the transition for an action; the empty one if the action is not an event of the machine.
    @inlinable
    public static func reduce(_ state: State, _ action: Action) -> Transition {
        switch Action.map(action) {
        case .input(let input): reduceInput(state, input)
        case .ioResult(let result): reduceIOResult(state, result)
        case nil: identity
        }
    }

    /// Replaces the state by the next one, and returns the effect.
    @inlinable
    public func apply(_ transition: Transition, to state: inout State) -> Effect<Action> {
        if let next = transition.0 { state = next }
        return transition.1.map(applyIOEffect) ?? .none
    }

    /// Runs the effect and sends each of its results, like ``results(of:)``.
    public func applyIOEffect(_ ioEffect: IOEffect) -> Effect<Action> { results(of: ioEffect) }

    /// Runs an effect that is not composed, and sends each of its results.
    public func results(of ioEffect: IOEffect) -> Effect<Action> {
        .run { send in
            for await result in runIOEffect(ioEffect) { await send(.ioResult(result)) }
        }
    }

    /// The machine as a reducer.
    @inlinable
    public var body: StateMachineReducer<Self> { StateMachineReducer(machine: self) }
}

/// Runs a state machine: first the transition, then its effect.
public struct StateMachineReducer<Machine: StateMachine>: Reducer
where
    Machine.Action: StateMachineEventConvertible, Machine.Action.Input == Machine.Input,
    Machine.Action.IOResult == Machine.IOResult
{
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    @usableFromInline let machine: Machine

    /// Creates the reducer of a machine.
    ///
    /// - Parameter machine: the machine whose functions it runs. The `body` of a machine is this reducer by default.
    @inlinable
    public init(machine: Machine) { self.machine = machine }

    /// Performs the transition, if the action is an event of the machine, and returns its effect.
    @inlinable
    public func reduce(into state: inout Machine.State, action: Machine.Action) -> Effect<Machine.Action> {
        machine.apply(Machine.reduce(state, action), to: &state)
    }
}
