/// What a state machine reacts to.
@CasePathable
public enum StateMachineEvent<Input, IOResult> {
    /// Something came from outside.
    case input(Input)
    /// An effect has answered.
    case ioResult(IOResult)
}

extension StateMachineEvent: Sendable where Input: Sendable, IOResult: Sendable {}
extension StateMachineEvent: Equatable where Input: Equatable, IOResult: Equatable {}
extension StateMachineEvent: Hashable where Input: Hashable, IOResult: Hashable {}

/// Actions among which are the events of a state machine; the others are for other reducers.
///
/// A machine whose `IOResult` is `Never` has `case ioResult(Never)`.
public protocol StateMachineEventConvertible {
    /// What comes from outside: that of the machine.
    associatedtype Input
    /// What effects answer: that of the machine.
    associatedtype IOResult

    /// The action that an input is; a case of this name will do.
    static func input(_: Input) -> Self
    /// The action that an effect's result is; a case of this name will do.
    static func ioResult(_: IOResult) -> Self
    /// The event that an action is; nil for the actions of others.
    static func map(_ action: Self) -> StateMachineEvent<Input, IOResult>?
}

extension StateMachineEvent: StateMachineEventConvertible {
    /// Every action is an event.
    public static func map(_ action: Self) -> StateMachineEvent<Input, IOResult>? { action }
}
