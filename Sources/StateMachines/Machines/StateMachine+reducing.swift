extension StateMachine
where Action: StateMachineEventConvertible, Action.Input == Input, Action.IOResult == IOResult {
    /// What is next after an action; nothing, if it is not for the machine.
    @inlinable
    public static func reduce(_ state: State, _ action: Action) -> Transition {
        switch Action.map(action) {
        case .input(let input): reduceInput(state, input)
        case .ioResult(let result): reduceIOResult(state, result)
        case nil: identity
        }
    }

    /// Puts the next state in the place of the old one, and returns the effect.
    @inlinable
    public func apply(_ transition: Transition, to state: inout State) -> Effect<Action> {
        if let next = transition.0 { state = next }
        return transition.1.map(applyIOEffect) ?? .none
    }

    /// Runs the effect and sends each of its results; the same as ``results(of:)``.
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
    /// None: ``reduce(into:action:)`` does it all.
    public typealias Body = Never
    @usableFromInline let machine: Machine

    /// - Parameter machine: whose functions it runs; `body` of a machine is this already.
    @inlinable
    public init(machine: Machine) { self.machine = machine }

    /// Takes the transition that the machine says, if the action is an event of it, and returns its effect.
    @inlinable
    public func reduce(into state: inout Machine.State, action: Machine.Action) -> Effect<Machine.Action> {
        machine.apply(Machine.reduce(state, action), to: &state)
    }
}
