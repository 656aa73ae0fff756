internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

/// Subscribes to a state of an actor within the process, like a connection that is always writable.
///
/// `@unchecked Sendable`: used on its loop only, except for constants.
final class InspectorStateSubscription: StreamSubscriber, @unchecked Sendable {
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
    /// Whether the subscription ends after the first version.
    private let isOnce: Bool
    private let receive: @Sendable (SentVersion?) -> Void
    private var subscription: StreamSubscription?
    /// Keeps itself alive, since a stream does not retain its subscribers.
    private var itself: InspectorStateSubscription?
    private var isOver = false

    /// - Parameter take: receives each version on the loop, and nil at the end.
    private init(on loop: SystemShard, isOnce: Bool, _ take: @escaping @Sendable (SentVersion?) -> Void) {
        self.loop = loop
        self.isOnce = isOnce
        self.receive = take
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
        guard !isOver else { return }
        itself = self
        let label = ServerEvent.Stream(actor: record.name, type: record.type.name, target: stream)
        loop.subscribe(to: hub, as: label) { broadcaster in
            let created = StreamSubscription(streamID: [], broadcaster: broadcaster, subscriber: self, isFiltered: true)
            subscription = created
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
            self.isOver = true
            if let subscription = self.subscription { subscription.broadcaster.remove(subscription) }
            self.subscription = nil
            self.itself = nil
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
