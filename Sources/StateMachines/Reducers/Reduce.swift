/// A reducer made of a closure.
public struct Reduce<State, Action: Sendable>: Reducer {
    public typealias Body = Never
    @usableFromInline let reduce: @Sendable (inout State, Action) -> Effect<Action>

    @inlinable
    public init(_ reduce: @escaping @Sendable (_ state: inout State, _ action: Action) -> Effect<Action>) {
        self.reduce = reduce
    }

    /// Hides the type of another reducer.
    public init<R: Reducer>(_ reducer: R) where R.State == State, R.Action == Action {
        reduce = { reducer.reduce(into: &$0, action: $1) }
    }

    @inlinable
    public func reduce(into state: inout State, action: Action) -> Effect<Action> {
        reduce(&state, action)
    }
}

/// A reducer that does nothing.
public struct EmptyReducer<State, Action: Sendable>: Reducer {
    public typealias Body = Never

    public init() {}

    public func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
}
