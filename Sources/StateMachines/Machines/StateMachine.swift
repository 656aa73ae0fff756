/// A reducer in two parts: pure functions that say what is next, and effects that do it.
///
/// `reduceInput` and `reduceIOResult` are static, so they see the state and the event and nothing else: no dependency, no
/// clock, no self. What they return is a ``Transition``: the next state, and the effect to run, each if there is one.
/// Only `runIOEffect` touches the world.
///
/// With `@ComposableEffectRunner` the effects are composable and each has a method of its own. Without it, write
/// `runIOEffect`; all else has a default.
public protocol StateMachine: Reducer {
    /// What comes from outside: a tap, a message, a timer.
    associatedtype Input: Sendable
    /// What is to be done outside.
    associatedtype IOEffect: Sendable
    /// What an effect answers. `Never`, if effects answer nothing.
    associatedtype IOResult: Sendable
    /// What the reducer is sent: the machine's events, as they are or among other actions (``StateMachineEventConvertible``).
    associatedtype Action = StateMachineEvent<Input, IOResult>
    /// The type of ``nestedBody``; inferred.
    associatedtype NestedBody: Reducer = EmptyReducer<State, Action>
    /// The results of one effect.
    typealias IOResultStream = AsyncStream<IOResult>
    /// The next state, or nil to keep it, and the effect to run, if any.
    typealias Transition = (State?, IOEffect?)

    /// What is next after an input.
    static func reduceInput(_ state: State, _ input: Input) -> Transition
    /// What is next after a result of an effect.
    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition
    /// Runs an effect; what the stream gives is reduced one by one until it ends.
    ///
    /// When the effect is cancelled, the stream is: it hears of that through `onTermination`.
    func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream
    /// Makes an effect of the runtime out of an effect of the machine.
    func applyIOEffect(_ ioEffect: IOEffect) -> Effect<Action>

    /// Children that run before the machine, if `@ComposableEffectRunner(isBodyComposable: true)` says so.
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
