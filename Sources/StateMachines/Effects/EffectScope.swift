/// The place of a child in the tree of reducers: what runs here can be ended as a whole.
struct EffectScope: Sendable {
    private struct Everything: Hashable, Sendable {}

    private let station: [AnyID]

    init(_ state: some Hashable & Sendable) { station = [AnyID(state)] }
    init(_ state: some Hashable & Sendable, _ id: some Hashable & Sendable) { station = [AnyID(state), AnyID(id)] }

    /// Runs a child's reducer; its effects, and the ids in them, belong to this place.
    func run<Action>(_ reduce: () -> Effect<Action>) -> Effect<Action> {
        DependencyValues.within(station) { reduce().cancellable(id: Everything()) }
    }

    /// Ends all effects of the child and of its own children.
    func cancellation<Action>() -> Effect<Action> {
        DependencyValues.within(station) { .cancel(id: Everything()) }
    }
}
