/// The logic of a feature: changes the state for an action and returns the effects to run.
///
/// Write either `body`, composed of other reducers, or `reduce(into:action:)`. A reducer is a value without mutable
/// state.
public protocol Reducer<State, Action>: Sendable {
    /// The state of the feature: a value, usually a struct with `@ObservableState`.
    associatedtype State
    /// The actions of the feature, usually an enum.
    associatedtype Action: Sendable
    /// The type of ``body``; inferred, and `Never` for a reducer without one.
    associatedtype Body

    /// Changes `state` and returns the effects to run. It must have no other side effects.
    func reduce(into state: inout State, action: Action) -> Effect<Action>

    /// The composition of this reducer. Its parts run in order, and their effects concurrently.
    @ReducerBuilder<State, Action> var body: Body { get }
}

extension Reducer where Body == Never {
    /// Never called: a reducer without `body` has `reduce(into:action:)`.
    public var body: Body {
        fatalError("\(Self.self) has no body: it implements reduce(into:action:)")
    }
}

extension Reducer where Body: Reducer, Body.State == State, Body.Action == Action {
    /// Runs the reducers of ``body``.
    @inlinable
    public func reduce(into state: inout State, action: Action) -> Effect<Action> {
        body.reduce(into: &state, action: action)
    }
}

/// A reducer with the state and actions of another: `var body: some ReducerOf<Self>`.
public typealias ReducerOf<R: Reducer> = Reducer<R.State, R.Action>

/// The effects of a reducer.
public typealias EffectOf<R: Reducer> = Effect<R.Action>
