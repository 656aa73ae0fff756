/// Puts the reducers of a `body` together; they run from the top down.
@resultBuilder
public enum ReducerBuilder<State, Action: Sendable> {
    // The type as a parameter keeps an existential from being opened here: it is for the next one.
    public static func buildExpression<R: Reducer>(_ reducer: R, as type: R.Type = R.self) -> R
    where R.State == State, R.Action == Action {
        reducer
    }

    /// A reducer whose type is not known: `any Reducer<State, Action>`.
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

    /// The reducers of a `for`, one after the other.
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

/// Two reducers, one after the other; the builder makes it.
public struct ReducerSequence<First: Reducer, Second: Reducer>: Reducer
where First.State == Second.State, First.Action == Second.Action {
    /// None: ``reduce(into:action:)`` runs the two.
    public typealias Body = Never
    let first: First
    let second: Second

    /// Runs the first, then the second on what that left; their effects run at once.
    public func reduce(into state: inout First.State, action: First.Action) -> Effect<First.Action> {
        let effect = first.reduce(into: &state, action: action)
        return effect.merge(with: second.reduce(into: &state, action: action))
    }
}

/// Several reducers of one type, one after the other; a `for` in a builder makes it.
public struct ReducerArray<Element: Reducer>: Reducer {
    /// None: ``reduce(into:action:)`` runs them.
    public typealias Body = Never
    let reducers: [Element]

    /// Runs them in order, each on what the one before has left; their effects run at once.
    public func reduce(into state: inout Element.State, action: Element.Action) -> Effect<Element.Action> {
        var effect = Effect<Element.Action>.none
        for reducer in reducers { effect = effect.merge(with: reducer.reduce(into: &state, action: action)) }
        return effect
    }
}

/// One of two reducers, chosen by an `if` in a builder.
public enum ReducerChoice<First: Reducer, Second: Reducer>: Reducer
where First.State == Second.State, First.Action == Second.Action {
    /// None: ``reduce(into:action:)`` runs the one that was chosen.
    public typealias Body = Never
    /// What stands under the `if`.
    case first(First)
    /// What stands under the `else`; without one, a reducer that does nothing.
    case second(Second)

    /// Runs the one that was chosen.
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
    /// None: ``reduce(into:action:)`` runs them.
    public typealias Body = Never
    private let reducers: Reducers

    /// - Parameter build: the reducers, from the top down.
    public init(@ReducerBuilder<State, Action> _ build: () -> Reducers) {
        reducers = build()
    }

    /// Runs them in order; their effects run at once.
    public func reduce(into state: inout State, action: Action) -> Effect<Action> {
        reducers.reduce(into: &state, action: action)
    }
}
