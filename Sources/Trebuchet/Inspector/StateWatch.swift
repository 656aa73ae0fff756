internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

/// Follows a state of an actor from inside of the process, as a connection would that takes everything.
///
/// `@unchecked Sendable`: touched on its loop alone, but for what is constant.
final class StateWatch: StreamSubscriber, @unchecked Sendable {
    /// Longer ones are not copied.
    static let longest = 1 << 20

    /// What a version was sent as.
    struct Taken: Sendable {
        let number: UInt64
        /// The version that it is the difference from; nil of a whole value.
        let base: UInt64?
        /// Nil when it is longer than that.
        let json: [UInt8]?
        let bytes: Int
        /// Connections that observe the state then.
        let subscribers: Int
    }

    private let loop: SystemShard
    /// Whether it is over with the first version that it is told.
    private let isOnce: Bool
    private let take: @Sendable (Taken?) -> Void
    private var subscription: StreamSubscription?
    /// A stream refers to who subscribes to it without holding him.
    private var itself: StateWatch?
    private var isOver = false

    /// - Parameter take: told each version, on the loop, and nil when there are none any more.
    private init(on loop: SystemShard, isOnce: Bool, _ take: @escaping @Sendable (Taken?) -> Void) {
        self.loop = loop
        self.isOnce = isOnce
        self.take = take
    }

    /// Follows a state from now on. Nothing comes of an actor that is gone.
    ///
    /// - Parameters:
    ///   - pool: where it is followed when the actor has no reactor.
    ///   - isOnce: whether its value now is wanted alone.
    @discardableResult
    static func follow(
        _ stream: String, of record: ActorRecord, else pool: SystemShard, isOnce: Bool = false,
        _ take: @escaping @Sendable (Taken?) -> Void
    ) -> StateWatch {
        let watch = StateWatch(on: record.home ?? pool, isOnce: isOnce, take)
        record.executeStreamingTarget(stream) { hub in
            watch.loop.reactor.run {
                guard let hub else { return take(nil) }
                watch.begin(stream, of: record, hub)
            }
        }
        return watch
    }

    private func begin(_ stream: String, of record: ActorRecord, _ hub: StreamHub) {
        guard !isOver else { return }
        itself = self
        let label = ServerEvent.Stream(actor: record.name, type: record.type.name, target: stream)
        loop.subscribe(to: hub, as: label) { broadcaster in
            let made = StreamSubscription(streamID: [], broadcaster: broadcaster, subscriber: self, isFiltered: true)
            subscription = made
            return made
        } attach: { broadcaster in
            record.executeStreamingTarget(stream) { source in
                if source == nil { broadcaster.send(.ended) } else { broadcaster.hub.attach(broadcaster) }
            }
        }
    }

    /// Follows it no more. From anywhere.
    func leave() {
        loop.reactor.execute {
            self.isOver = true
            if let subscription = self.subscription { subscription.broadcaster.remove(subscription) }
            self.subscription = nil
            self.itself = nil
        }
    }

    var isLocal: Bool { true }
    var countsDeliveries: Bool { false }
    var isLooking: Bool { true }
    var isWritable: Bool { true }
    var isAwaited: Bool { false }
    func inOneWrite(_ body: () -> Void) { body() }
    func fellBehind(_ subscription: StreamSubscription) {}
    func streamsMayShow() {}

    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        let number = subscription.sent
        let base = StreamDataParts.base(inSuffix: suffix.bytes, sequence: number)
        let json =
            base.map { StreamDataParts.patch(inSuffix: suffix.bytes, sequence: number, base: $0) }
            ?? StreamDataParts.data(inSuffix: suffix.bytes, sequence: number)
        take(
            Taken(
                number: number, base: base, json: json.count <= Self.longest ? Array(json) : nil, bytes: json.count,
                subscribers: subscription.broadcaster.hub.subscriberCount))
        if isOnce { leave() }
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        take(nil)
        // The stream may have let go of it already, which this does no harm to.
        leave()
    }
}
