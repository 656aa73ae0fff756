extension Reducer {
    /// Runs the reducer, and its effects, with another value of a dependency: `.dependency(\.continuousClock, clock)`.
    ///
    /// It overrides the value given to the store.
    public func dependency<Value: Sendable>(
        _ path: any WritableKeyPath<DependencyValues, Value> & Sendable, _ value: Value
    ) -> DependencyReducer<Self> {
        DependencyReducer(base: self) { $0[keyPath: path] = value }
    }

    /// Runs the reducer, and its effects, with another value of a dependency that is its own key.
    public func dependency<Value: TestDependencyKey>(_ value: Value) -> DependencyReducer<Self>
    where Value.Value == Value {
        DependencyReducer(base: self) { $0[Value.self] = value }
    }

    /// Runs the reducer, and its effects, with a changed dependency. The closure receives the current value.
    public func transformDependency<Value>(
        _ path: any WritableKeyPath<DependencyValues, Value> & Sendable,
        transform: @escaping @Sendable (inout Value) -> Void
    ) -> DependencyReducer<Self> {
        DependencyReducer(base: self) { transform(&$0[keyPath: path]) }
    }
}

/// A reducer with other dependencies; created by `dependency` and `transformDependency`.
public struct DependencyReducer<Base: Reducer>: Reducer {
    /// Not used: ``reduce(into:action:)`` implements the reducer.
    public typealias Body = Never
    let base: Base
    let change: @Sendable (inout DependencyValues) -> Void

    /// Runs the reducer with the dependencies.
    public func reduce(into state: inout Base.State, action: Base.Action) -> Effect<Base.Action> {
        let values = DependencyValues.current.changed(by: change)
        return DependencyValues.$current.withValue(values) { base.reduce(into: &state, action: action) }
    }
}
