internal import Relays

/// The state of a loader: the newest for who asks, every change for who follows.
///
/// A relay of states alone may skip what a reader has no time for, and then two readers need not see the same. So the
/// changes also go through an event relay, with the version that the first one gave them, and a reader joins the two.
final class LoadingStateStore<Value: Hashable & Sendable>: Sendable {
    struct Change: Sendable {
        var version: UInt64
        var state: LoadingState<Value>
    }

    private let newest = StateRelay<LoadingState<Value>>(.idle)
    private let changes = EventRelay<Change>()

    var current: LoadingState<Value> { newest.currentValue }

    /// On the main actor, so that both relays get the changes in one order.
    @MainActor
    func publish(_ state: LoadingState<Value>) {
        newest.update(state)
        changes.send(Change(version: newest.version, state: state))
    }

    /// Ends all streams, each once its reader has seen what there is.
    func finish() {
        newest.finish()
        changes.finish()
    }

    /// The newest change, and a subscription to those after it; the subscription may begin with some of before.
    func follow(limit: Int) -> (Change, EventSubscription<Change>) {
        let subscription = changes.subscribe(bufferLimit: limit, onOverflow: .dropOldest)
        let (state, version) = newest.current
        return (Change(version: version, state: state), subscription)
    }
}
