/// A reducer made of a closure.
public struct Reduce<State, Action: Sendable>: Reducer {
    /// None: the closure does it all.
    public typealias Body = Never
    @usableFromInline let reduce: @Sendable (inout State, Action) -> Effect<Action>

    /// - Parameter reduce: changes the state and returns the effects to run. It must do nothing else: it may be called
    ///   anywhere.
    @inlinable
    public init(_ reduce: @escaping @Sendable (_ state: inout State, _ action: Action) -> Effect<Action>) {
        self.reduce = reduce
    }

    /// Hides the type of another reducer.
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
    /// None.
    public typealias Body = Never

    /// A reducer for a place where one has to stand.
    public init() {}

    /// Changes nothing, and returns no effect.
    public func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
}
