/// A reducer in two parts: pure functions that decide, and effects that act.
///
/// `reduceInput` and `reduceIOResult` are static, so they see only the state and the event: no dependency, no clock,
/// no self. They return a ``Transition``: the next state, and the effect to run, each if there is one. Only
/// `runIOEffect` has side effects.
///
/// With `@ComposableEffectRunner` the effects are composable and each has a dedicated method. Without it, write
/// `runIOEffect`; the other requirements have defaults.
public protocol StateMachine: Reducer {
    /// Events from outside: a tap, a message, a timer.
    associatedtype Input: Sendable
    /// The effects of the machine.
    associatedtype IOEffect: Sendable
    /// The results of effects. `Never`, if effects have no results.
    associatedtype IOResult: Sendable
    /// The actions of the reducer: the machine's events, alone or among other actions
    /// (``StateMachineEventConvertible``).
    associatedtype Action = StateMachineEvent<Input, IOResult>
    /// The type of ``nestedBody``; inferred.
    associatedtype NestedBody: Reducer = EmptyReducer<State, Action>
    /// The results of one effect.
    typealias IOResultStream = AsyncStream<IOResult>
    /// The next state, or nil to keep it, and the effect to run, if any.
    typealias Transition = (State?, IOEffect?)

    /// Returns the transition for an input.
    static func reduceInput(_ state: State, _ input: Input) -> Transition
    /// Returns the transition for a result of an effect.
    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition
    /// Runs an effect. The elements of the stream are reduced one by one until it ends.
    ///
    /// When the effect is cancelled, so is the stream, which is notified through `onTermination`.
    func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream
    /// Converts an effect of the machine to an effect of the runtime.
    func applyIOEffect(_ ioEffect: IOEffect) -> Effect<Action>

    /// Children that run before the machine, if `@ComposableEffectRunner(isBodyComposable: true)` is used.
    @ReducerBuilder<State, Action> var nestedBody: NestedBody { get }
}

extension StateMachine where NestedBody == EmptyReducer<State, Action> {
    /// No children.
    public var nestedBody: NestedBody { EmptyReducer() }
}

extension StateMachine where IOResult == Never {
    /// Never called: there are no results.
    public static func reduceIOResult(_ state: State, _ ioResult: Never) -> Transition {}
}

extension StateMachine where IOEffect == Never {
    /// Never called: there are no effects.
    public func runIOEffect(_ ioEffect: Never) -> IOResultStream {}
}
