/// What a feature does with an action: it changes the state and says which effects to run.
///
/// Either write `body`, out of other reducers, or `reduce(into:action:)`. A reducer is a value without state of its own.
public protocol Reducer<State, Action>: Sendable {
    /// What the feature knows; a value, as a rule a struct with `@ObservableState`.
    associatedtype State
    /// What can happen to it, as a rule an enum.
    associatedtype Action: Sendable
    /// The type of ``body``; inferred, and `Never` for a reducer without one.
    associatedtype Body

    /// Changes `state` and returns the effects to run; nothing else may happen here.
    func reduce(into state: inout State, action: Action) -> Effect<Action>

    /// The reducers that this one is made of; they run in order, and their effects at once.
    @ReducerBuilder<State, Action> var body: Body { get }
}

extension Reducer where Body == Never {
    /// Never called: a reducer without `body` has `reduce(into:action:)`.
    public var body: Body {
        fatalError("\(Self.self) has no body: it is run through reduce(into:action:)")
    }
}

extension Reducer where Body: Reducer, Body.State == State, Body.Action == Action {
    /// Runs the reducers of ``body``.
    @inlinable
    public func reduce(into state: inout State, action: Action) -> Effect<Action> {
        body.reduce(into: &state, action: action)
    }
}

/// A reducer of the state and the actions of another: `var body: some ReducerOf<Self>`.
public typealias ReducerOf<R: Reducer> = Reducer<R.State, R.Action>

/// The effects of a reducer.
public typealias EffectOf<R: Reducer> = Effect<R.Action>
