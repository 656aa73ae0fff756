/// Composes the reducers of a `body`. They run from top to bottom.
@resultBuilder
public enum ReducerBuilder<State, Action: Sendable> {
    // The type parameter prevents the opening of an existential here: the next overload is for that.
    public static func buildExpression<R: Reducer>(_ reducer: R, as type: R.Type = R.self) -> R
    where R.State == State, R.Action == Action {
        reducer
    }

    /// Accepts a type-erased reducer: `any Reducer<State, Action>`.
    @_disfavoredOverload
    public static func buildExpression(_ reducer: any Reducer<State, Action>) -> Reduce<State, Action> {
        Reduce(reducer)
    }

    public static func buildBlock() -> EmptyReducer<State, Action> { EmptyReducer() }

    public static func buildPartialBlock<R: Reducer>(first: R) -> R where R.State == State, R.Action == Action {
        first
    }

    public static func buildPartialBlock<First: Reducer, Second: Reducer>(
        accumulated: First, next: Second
    ) -> ReducerSequence<First, Second>
    where First.State == State, First.Action == Action, Second.State == State, Second.Action == Action {
        ReducerSequence(first: accumulated, second: next)
    }

    /// Composes the reducers of a `for`, in sequence.
    public static func buildArray<R: Reducer>(_ reducers: [R]) -> ReducerArray<R>
    where R.State == State, R.Action == Action {
        ReducerArray(reducers: reducers)
    }

    public static func buildOptional<R: Reducer>(
        _ reducer: R?
    ) -> ReducerChoice<R, EmptyReducer<State, Action>> where R.State == State, R.Action == Action {
        reducer.map(ReducerChoice.first) ?? .second(EmptyReducer())
    }

    public static func buildEither<First: Reducer, Second: Reducer>(
        first: First
    ) -> ReducerChoice<First, Second>
    where First.State == State, First.Action == Action, Second.State == State, Second.Action == Action {
        .first(first)
    }

    public static func buildEither<First: Reducer, Second: Reducer>(
        second: Second
    ) -> ReducerChoice<First, Second>
    where First.State == State, First.Action == Action, Second.State == State, Second.Action == Action {
        .second(second)
    }

    public static func buildLimitedAvailability<R: Reducer>(
        _ reducer: R
    ) -> Reduce<State, Action> where R.State == State, R.Action == Action {
        Reduce(reducer)
    }

    public static func buildFinalResult<R: Reducer>(_ reducer: R) -> R where R.State == State, R.Action == Action {
        reducer
    }
}

/// Two reducers in sequence; created by the builder.
public struct ReducerSequence<First: Reducer, Second: Reducer>: Reducer
where First.State == Second.State, First.Action == Second.Action {
    /// Not used: ``reduce(into:action:)`` runs the two.
    public typealias Body = Never
    let first: First
    let second: Second

    /// Runs the first, then the second on the resulting state. Their effects run concurrently.
    public func reduce(into state: inout First.State, action: First.Action) -> Effect<First.Action> {
        let effect = first.reduce(into: &state, action: action)
        return effect.merge(with: second.reduce(into: &state, action: action))
    }
}

/// Several reducers of one type in sequence; created by a `for` in a builder.
public struct ReducerArray<Element: Reducer>: Reducer {
    /// Not used: ``reduce(into:action:)`` runs the reducers.
    public typealias Body = Never
    let reducers: [Element]

    /// Runs the reducers in order, each on the resulting state of the previous one. Their effects run concurrently.
    public func reduce(into state: inout Element.State, action: Element.Action) -> Effect<Element.Action> {
        var effect = Effect<Element.Action>.none
        for reducer in reducers { effect = effect.merge(with: reducer.reduce(into: &state, action: action)) }
        return effect
    }
}

/// One of two reducers, chosen by an `if` in a builder.
public enum ReducerChoice<First: Reducer, Second: Reducer>: Reducer
where First.State == Second.State, First.Action == Second.Action {
    /// Not used: ``reduce(into:action:)`` runs the chosen reducer.
    public typealias Body = Never
    /// The reducer of the `if` branch.
    case first(First)
    /// The reducer of the `else` branch; without one, a reducer that does nothing.
    case second(Second)

    /// Runs the chosen reducer.
    public func reduce(into state: inout First.State, action: First.Action) -> Effect<First.Action> {
        switch self {
        case .first(let reducer): reducer.reduce(into: &state, action: action)
        case .second(let reducer): reducer.reduce(into: &state, action: action)
        }
    }
}

/// Several reducers as one, so that `ifLet` or `forEach` can be applied to all of them.
public struct CombineReducers<State, Action: Sendable, Reducers: Reducer>: Reducer
where Reducers.State == State, Reducers.Action == Action {
    /// Not used: ``reduce(into:action:)`` runs the reducers.
    public typealias Body = Never
    private let reducers: Reducers

    /// Combines reducers.
    ///
    /// - Parameter build: the reducers, from top to bottom.
    public init(@ReducerBuilder<State, Action> _ build: () -> Reducers) {
        reducers = build()
    }

    /// Runs the reducers in order. Their effects run concurrently.
    public func reduce(into state: inout State, action: Action) -> Effect<Action> {
        reducers.reduce(into: &state, action: action)
    }
}
