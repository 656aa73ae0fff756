internal import Relays

/// The state of a loader: the newest for queries, every change for followers.
///
/// A state relay alone may skip states for slow readers, so that two readers need not see the same states. Therefore
/// changes also pass through an event relay, with their version in the state relay, and a reader joins the two.
final class LoadingStateStore<Value: Hashable & Sendable>: Sendable {
    /// A state with its version in the state relay.
    struct Change: Sendable {
        var version: UInt64
        var state: LoadingState<Value>
    }

    private let newest = StateRelay<LoadingState<Value>>(.idle)
    private let changes = EventRelay<Change>()

    var current: LoadingState<Value> { newest.currentValue }

    /// Publishes a state. On the main actor, so that both relays get the changes in the same order.
    @MainActor
    func publish(_ state: LoadingState<Value>) {
        newest.update(state)
        changes.send(Change(version: newest.version, state: state))
    }

    /// Ends all streams, each after its reader has received the remaining states.
    func finish() {
        newest.finish()
        changes.finish()
    }

    /// Returns the newest change, and a subscription to later changes. The subscription may begin with some earlier
    /// ones.
    func subscribe(limit: Int) -> (Change, EventSubscription<Change>) {
        let subscription = changes.subscribe(bufferLimit: limit, onOverflow: .dropOldest)
        let (state, version) = newest.current
        return (Change(version: version, state: state), subscription)
    }
}
