internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// An inspected actor with its recorded versions.
final class InspectedActor: Sendable {
    let name: String
    /// Prevents the memory of the record from being reused for another one; never dereferenced. A weak reference would make
    /// each call of the actor permanently slower.
    private unowned let recordIdentity: ActorRecord
    private let identity: ObjectIdentifier
    let since = WallTime.milliseconds
    let lastInspected: Atomic<UInt64>
    let history: Mutex<InspectedVersions>
    private let watches = Mutex<(list: [InspectorStateSubscription], isOver: Bool)>(([], false))

    private let streams: [String]
    private let follow: @Sendable (InspectedActor, String) -> Void

    /// - Parameter follow: starts a watch of one of its states.
    init(
        _ record: ActorRecord, lastInspected: UInt64, follow: @escaping @Sendable (InspectedActor, String) -> Void
    ) {
        streams = record.type.description.states
        history = Mutex(InspectedVersions(streams, since: since))
        self.follow = follow
        name = record.name
        recordIdentity = record
        identity = ObjectIdentifier(record)
        self.lastInspected = Atomic(lastInspected)
    }

    deinit { stopObserving() }

    func isOf(_ record: ActorRecord) -> Bool { identity == ObjectIdentifier(record) }

    func addSubscription(_ watch: InspectorStateSubscription) {
        let isOver = watches.withLock { watches in
            if !watches.isOver { watches.list.append(watch) }
            return watches.isOver
        }
        if isOver { watch.cancel() }
    }

    /// Observes its states, unless they are observed already. Callable from any thread.
    func startObserving() {
        guard watches.withLock({ $0.list.isEmpty && !$0.isOver }) else { return }
        for stream in streams { follow(self, stream) }
    }

    /// Stops observing its states, permanently or until `startObserving`, so that nothing is encoded for the inspector. Callable from any
    /// thread.
    func stopObserving(permanently: Bool = true) {
        let list = watches.withLock { watches in
            defer { watches = ([], watches.isOver || permanently) }
            return watches.list
        }
        for watch in list { watch.cancel() }
    }
}
