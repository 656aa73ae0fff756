extension StateMachine {
    /// No transition: the event is not defined in this state.
    @inlinable public static var undefined: Transition { (nil, nil) }
    /// No transition.
    @inlinable public static var identity: Transition { (nil, nil) }
    /// Returns a transition to the state, without an effect.
    @inlinable public static func nextState(_ state: State) -> Transition { (state, nil) }
    /// Returns a transition with the effect, in the same state.
    @inlinable public static func run(_ effect: IOEffect) -> Transition { (nil, effect) }
    /// Returns a transition to the state, followed by the effect.
    @inlinable public static func transition(_ state: State, _ effect: IOEffect) -> Transition { (state, effect) }
    /// Runs a closure at once, which a pure function must not do: for temporary log output during debugging.
    @inlinable public static func unsafe(_ action: @escaping () -> Void) -> Transition {
        action()
        return (nil, nil)
    }
}
