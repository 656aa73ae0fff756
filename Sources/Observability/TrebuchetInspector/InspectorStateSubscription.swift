internal import Bytes
internal import Networking
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire

/// Subscribes to a state of an actor within the process, like a connection that is always writable.
final class InspectorStateSubscription: StreamSubscriber, Sendable {
    /// The maximum size of a copied value in bytes.
    static let longest = 1 << 20

    /// A version in the form that subscribers receive.
    struct SentVersion: Sendable {
        let number: UInt64
        /// The version that a patch is based on; nil for a snapshot.
        let base: UInt64?
        /// The patch or snapshot; nil if it is longer than `longest`.
        let json: [UInt8]?
        let bytes: Int
        /// The number of connections that observed the state at that time.
        let subscribers: Int
    }

    private let loop: SystemShard
    /// True if the subscription ends after the first version.
    private let isOnce: Bool
    private let receive: @Sendable (SentVersion?) -> Void
    private let state: LoopVariable<State>

    private struct State {
        var subscription: StreamSubscription?
        /// Keeps itself alive, since a stream does not retain its subscribers.
        var itself: InspectorStateSubscription?
        var isOver = false
    }

    /// - Parameter take: receives each version on the loop, and nil at the end.
    private init(on loop: SystemShard, isOnce: Bool, _ take: @escaping @Sendable (SentVersion?) -> Void) {
        self.loop = loop
        self.isOnce = isOnce
        self.receive = take
        state = LoopVariable(State(), on: loop.reactor)
    }

    /// Subscribes to a state. A subscription to a deactivated actor receives nothing.
    ///
    /// - Parameters:
    ///   - pool: the loop for actors without a reactor.
    ///   - isOnce: whether only the current value is needed.
    @discardableResult
    static func follow(
        _ stream: String, of record: ActorRecord, else pool: SystemShard, isOnce: Bool = false,
        _ take: @escaping @Sendable (SentVersion?) -> Void
    ) -> InspectorStateSubscription {
        let watch = InspectorStateSubscription(on: record.home ?? pool, isOnce: isOnce, take)
        record.executeStreamingTarget(stream) { hub in
            watch.loop.reactor.run {
                guard let hub else { return take(nil) }
                watch.subscribe(stream, of: record, hub)
            }
        }
        return watch
    }

    private func subscribe(_ stream: String, of record: ActorRecord, _ hub: StreamProducer) {
        guard !state.value.isOver else { return }
        state.value.itself = self
        let label = ServerEvent.Stream(actor: record.name, type: record.type.name, target: stream)
        loop.subscribe(to: hub, as: label) { broadcaster in
            let created = StreamSubscription(streamID: [], broadcaster: broadcaster, subscriber: self, isFiltered: true)
            state.value.subscription = created
            return created
        } attach: { broadcaster in
            record.executeStreamingTarget(stream) { source in
                if source == nil { broadcaster.send(.ended) } else { broadcaster.producer.attach(broadcaster) }
            }
        }
    }

    /// Ends the subscription. Callable from any thread.
    func cancel() {
        loop.reactor.execute {
            self.state.value.isOver = true
            if let subscription = self.state.value.subscription { subscription.broadcaster.remove(subscription) }
            self.state.value.subscription = nil
            self.state.value.itself = nil
        }
    }

    var isLocal: Bool { true }
    var countsDeliveries: Bool { false }
    var isInspector: Bool { true }
    var isWritable: Bool { true }
    var isAwaited: Bool { false }
    func inOneWrite(_ body: () -> Void) { body() }
    func didBlock(_ subscription: StreamSubscription) {}
    func streamDidCatchUp() {}

    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        let number = subscription.sent
        let base = StreamDataEncoding.base(inSuffix: suffix.bytes, sequence: number)
        let json =
            base.map { StreamDataEncoding.patch(inSuffix: suffix.bytes, sequence: number, base: $0) }
            ?? StreamDataEncoding.data(inSuffix: suffix.bytes, sequence: number)
        receive(
            SentVersion(
                number: number, base: base, json: json.count <= Self.longest ? Array(json) : nil, bytes: json.count,
                subscribers: subscription.broadcaster.producer.subscriberCount))
        if isOnce { cancel() }
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        receive(nil)
        // The stream may have removed the subscription already; removing it twice is harmless.
        cancel()
    }
}
