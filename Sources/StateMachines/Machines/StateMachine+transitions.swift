extension StateMachine {
    /// Nothing is next: this event means nothing in this state.
    @inlinable public static var undefined: Transition { (nil, nil) }
    /// Nothing is next.
    @inlinable public static var identity: Transition { (nil, nil) }
    /// The state is next, without an effect.
    @inlinable public static func nextState(_ state: State) -> Transition { (state, nil) }
    /// The effect is next, in the same state.
    @inlinable public static func run(_ effect: IOEffect) -> Transition { (nil, effect) }
    /// The state is next, and then the effect.
    @inlinable public static func transition(_ state: State, _ effect: IOEffect) -> Transition { (state, effect) }
    /// Does something at once, which a pure function must not: for a line in a log while you look for a mistake.
    @inlinable public static func unsafe(_ action: @escaping () -> Void) -> Transition {
        action()
        return (nil, nil)
    }
}
