/// The place of a child in the tree of reducers. Its effects can be ended together.
struct EffectScope: Sendable {
    /// The id under which all effects of a child are registered.
    private struct Everything: Hashable, Sendable {}

    private let path: [AnyID]

    init(_ state: some Hashable & Sendable) { path = [AnyID(state)] }
    init(_ state: some Hashable & Sendable, _ id: some Hashable & Sendable) { path = [AnyID(state), AnyID(id)] }

    /// Runs a child's reducer. Its effects, and their ids, belong to this place.
    func run<Action>(_ reduce: () -> Effect<Action>) -> Effect<Action> {
        DependencyValues.withPath(path) { reduce().cancellable(id: Everything()) }
    }

    /// Returns an effect that ends all effects of the child and of its children.
    func cancellation<Action>() -> Effect<Action> {
        DependencyValues.withPath(path) { .cancel(id: Everything()) }
    }
}
