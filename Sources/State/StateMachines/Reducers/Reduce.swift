/// A reducer that calls a closure.
public struct Reduce<State, Action: Sendable>: Reducer {
    /// Not used: the closure implements the reducer.
    public typealias Body = Never
    @usableFromInline let reduce: @Sendable (inout State, Action) -> Effect<Action>

    /// Creates a reducer.
    ///
    /// - Parameter reduce: changes the state and returns the effects to run. It must have no side effects, and may be
    ///   called in any isolation.
    @inlinable
    public init(_ reduce: @escaping @Sendable (_ state: inout State, _ action: Action) -> Effect<Action>) {
        self.reduce = reduce
    }

    /// Creates a type-erased reducer.
    public init<R: Reducer>(_ reducer: R) where R.State == State, R.Action == Action {
        reduce = { reducer.reduce(into: &$0, action: $1) }
    }

    /// Calls the closure.
    @inlinable
    public func reduce(into state: inout State, action: Action) -> Effect<Action> {
        reduce(&state, action)
    }
}

/// A reducer that does nothing.
public struct EmptyReducer<State, Action: Sendable>: Reducer {
    /// Not used.
    public typealias Body = Never

    /// Creates an empty reducer, as a placeholder.
    public init() {}

    /// Changes nothing, and returns no effect.
    public func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
}
