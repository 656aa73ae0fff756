/// A state machine that assigns ids to its effects: each new effect with an id ends the previous one.
public protocol DebuggableStateMachine: StateMachine {
    /// An id, of any type.
    typealias CancelID = any Hashable & Sendable

    /// Returns the id of the effect caused by an action; nil for an effect that no other ends.
    ///
    /// - Parameter state: the state after the action.
    static func makeIOEffectCancelID(_ state: State, _ action: Action) -> CancelID?
}

extension DebuggableStateMachine
where Action: StateMachineEventConvertible, Action.Input == Input, Action.IOResult == IOResult {
    /// The machine as a reducer whose effects end each other.
    public var body: DebuggableStateMachineReducer<Self> { DebuggableStateMachineReducer(machine: self) }
}

/// Runs a state machine whose effects end each other: first the transition, then its effect, under its id.
public struct DebuggableStateMachineReducer<Machine: DebuggableStateMachine>: Reducer
where
    Machine.Action: StateMachineEventConvertible, Machine.Action.Input == Machine.Input,
    Machine.Action.IOResult == Machine.IOResult
{
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    private let machine: Machine

    /// Creates the reducer of a machine.
    ///
    /// - Parameter machine: the machine whose functions it runs. The `body` of a machine is this reducer by default.
    public init(machine: Machine) { self.machine = machine }

    /// Performs the transition and returns its effect, which ends the previous one with the same id.
    public func reduce(into state: inout Machine.State, action: Machine.Action) -> Effect<Machine.Action> {
        let effect = machine.apply(Machine.reduce(state, action), to: &state)
        if effect.isNone { return effect }
        guard let id = Machine.makeIOEffectCancelID(state, action) else { return effect }
        return effect.cancellable(id: id, cancelInFlight: true)
    }
}
