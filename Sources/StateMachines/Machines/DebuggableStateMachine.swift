/// A state machine that says by which id an effect is cancelled: each new effect of an id ends the one before.
public protocol DebuggableStateMachine: StateMachine {
    /// An id, of any type.
    typealias CancelID = any Hashable & Sendable

    /// The id of the effect that an action has led to; nil for an effect that no other ends.
    ///
    /// - Parameter state: the one after the action.
    static func makeIOEffectCancelID(_ state: State, _ action: Action) -> CancelID?
}

extension DebuggableStateMachine
where Action: StateMachineEventConvertible, Action.Input == Input, Action.IOResult == IOResult {
    /// The machine as a reducer whose effects end each other.
    public var body: DebuggableStateMachineReducer<Self> { DebuggableStateMachineReducer(machine: self) }
}

/// Runs a state machine whose effects end each other: first the transition, then its effect, by its id.
public struct DebuggableStateMachineReducer<Machine: DebuggableStateMachine>: Reducer
where
    Machine.Action: StateMachineEventConvertible, Machine.Action.Input == Machine.Input,
    Machine.Action.IOResult == Machine.IOResult
{
    /// None: ``reduce(into:action:)`` does it all.
    public typealias Body = Never
    private let machine: Machine

    /// - Parameter machine: whose functions it runs; `body` of a machine is this already.
    public init(machine: Machine) { self.machine = machine }

    /// Takes the transition that the machine says and returns its effect, which ends the one before of the same id.
    public func reduce(into state: inout Machine.State, action: Machine.Action) -> Effect<Machine.Action> {
        let effect = machine.apply(Machine.reduce(state, action), to: &state)
        if effect.isNone { return effect }
        guard let id = Machine.makeIOEffectCancelID(state, action) else { return effect }
        return effect.cancellable(id: id, cancelInFlight: true)
    }
}
