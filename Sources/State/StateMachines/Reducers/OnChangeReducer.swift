extension Reducer {
    /// Runs more reducers when a part of the state has changed.
    ///
    ///     .onChange(of: \.settings) { old, new in
    ///         Reduce { state, action in .run { _ in try await save(new) } }
    ///     }
    ///
    /// - Parameters:
    ///   - value: The part; compared before and after the reducer has run.
    ///   - reducer: The reducer to run then, on the resulting state, with the same action.
    public func onChange<Value: Equatable & SendableMetatype, Then: Reducer>(
        of value: @escaping @Sendable (State) -> Value,
        @ReducerBuilder<State, Action> _ reducer: @escaping @Sendable (_ old: Value, _ new: Value) -> Then
    ) -> OnChangeReducer<Self, Value, Then> {
        onChange(of: value, removeDuplicates: ==, reducer)
    }

    /// Runs more reducers when a part of the state has changed, according to `isDuplicate`.
    ///
    /// - Parameters:
    ///   - value: The part; compared before and after the reducer has run.
    ///   - isDuplicate: returns true if the part has not changed.
    ///   - reducer: The reducer to run then, on the resulting state, with the same action.
    public func onChange<Value, Then: Reducer>(
        of value: @escaping @Sendable (State) -> Value,
        removeDuplicates isDuplicate: @escaping @Sendable (_ old: Value, _ new: Value) -> Bool,
        @ReducerBuilder<State, Action> _ reducer: @escaping @Sendable (_ old: Value, _ new: Value) -> Then
    ) -> OnChangeReducer<Self, Value, Then> {
        OnChangeReducer(base: self, value: value, isDuplicate: isDuplicate, then: reducer)
    }
}

/// A reducer, and another that runs when it has changed a part of the state; created by `onChange`.
public struct OnChangeReducer<Base: Reducer, Value, Then: Reducer>: Reducer
where Then.State == Base.State, Then.Action == Base.Action {
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    let base: Base
    let value: @Sendable (Base.State) -> Value
    let isDuplicate: @Sendable (Value, Value) -> Bool
    let then: @Sendable (Value, Value) -> Then

    /// Runs the reducer, then the other one if the part has changed.
    public func reduce(into state: inout Base.State, action: Base.Action) -> Effect<Base.Action> {
        let old = value(state)
        let effect = base.reduce(into: &state, action: action)
        let new = value(state)
        guard !isDuplicate(old, new) else { return effect }
        return effect.merge(with: then(old, new).reduce(into: &state, action: action))
    }
}
