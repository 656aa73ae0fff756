/// An event of a state machine.
@CasePathable
public enum StateMachineEvent<Input, IOResult> {
    /// An event from outside.
    case input(Input)
    /// A result of an effect.
    case ioResult(IOResult)
}

extension StateMachineEvent: Sendable where Input: Sendable, IOResult: Sendable {}
extension StateMachineEvent: Equatable where Input: Equatable, IOResult: Equatable {}
extension StateMachineEvent: Hashable where Input: Hashable, IOResult: Hashable {}

/// Actions that include the events of a state machine; the others are for other reducers.
///
/// A machine whose `IOResult` is `Never` has `case ioResult(Never)`.
public protocol StateMachineEventConvertible {
    /// The inputs of the machine.
    associatedtype Input
    /// The effect results of the machine.
    associatedtype IOResult

    /// Returns the action for an input; a case of this name fulfils the requirement.
    static func input(_: Input) -> Self
    /// Returns the action for an effect's result; a case of this name fulfils the requirement.
    static func ioResult(_: IOResult) -> Self
    /// Returns the event of an action; nil for the actions of other reducers.
    static func map(_ action: Self) -> StateMachineEvent<Input, IOResult>?
}

extension StateMachineEvent: StateMachineEventConvertible {
    /// Returns the action itself: every action is an event.
    public static func map(_ action: Self) -> StateMachineEvent<Input, IOResult>? { action }
}
