extension Reducer {
    /// Runs the reducer, and its effects, with another value of a dependency: `.dependency(\.continuousClock, clock)`.
    ///
    /// It stands over what the store was given for it.
    public func dependency<Value: Sendable>(
        _ path: any WritableKeyPath<DependencyValues, Value> & Sendable, _ value: Value
    ) -> DependencyReducer<Self> {
        DependencyReducer(base: self) { $0[keyPath: path] = value }
    }

    /// The same, for a dependency that is its own key.
    public func dependency<Value: TestDependencyKey>(_ value: Value) -> DependencyReducer<Self>
    where Value.Value == Value {
        DependencyReducer(base: self) { $0[Value.self] = value }
    }

    /// Runs the reducer, and its effects, with a dependency changed: the closure gets the value that is in force.
    public func transformDependency<Value>(
        _ path: any WritableKeyPath<DependencyValues, Value> & Sendable,
        transform: @escaping @Sendable (inout Value) -> Void
    ) -> DependencyReducer<Self> {
        DependencyReducer(base: self) { transform(&$0[keyPath: path]) }
    }
}

/// A reducer with other dependencies; made by `dependency` and `transformDependency`.
public struct DependencyReducer<Base: Reducer>: Reducer {
    /// None: ``reduce(into:action:)`` does it all.
    public typealias Body = Never
    let base: Base
    let change: @Sendable (inout DependencyValues) -> Void

    /// Runs the reducer with the dependencies.
    public func reduce(into state: inout Base.State, action: Base.Action) -> Effect<Base.Action> {
        let values = DependencyValues.current.changed(by: change)
        return DependencyValues.$current.withValue(values) { base.reduce(into: &state, action: action) }
    }
}
