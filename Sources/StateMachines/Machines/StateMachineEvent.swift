/// What a state machine reacts to.
@CasePathable
public enum StateMachineEvent<Input, IOResult> {
    case input(Input)
    case ioResult(IOResult)
}

extension StateMachineEvent: Sendable where Input: Sendable, IOResult: Sendable {}
extension StateMachineEvent: Equatable where Input: Equatable, IOResult: Equatable {}
extension StateMachineEvent: Hashable where Input: Hashable, IOResult: Hashable {}

/// Actions among which are the events of a state machine; the others are for other reducers.
///
/// A machine whose `IOResult` is `Never` has `case ioResult(Never)`.
public protocol StateMachineEventConvertible {
    associatedtype Input
    associatedtype IOResult

    static func input(_: Input) -> Self
    static func ioResult(_: IOResult) -> Self
    /// The event that an action is; nil for the actions of others.
    static func map(_ action: Self) -> StateMachineEvent<Input, IOResult>?
}

extension StateMachineEvent: StateMachineEventConvertible {
    public static func map(_ action: Self) -> StateMachineEvent<Input, IOResult>? { action }
}
