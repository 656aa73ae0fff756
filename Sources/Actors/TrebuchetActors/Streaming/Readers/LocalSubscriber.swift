internal import Bytes
internal import Relays
internal import TrebuchetWire

/// A reader in this process of a filtered state, or of events after a bookmark: a subscriber like a connection. Only on its loop.
final class LocalSubscriber: StreamSubscriber {
    private let relay: StateRelay<EncodedStream.State>
    private let loop: SystemShard
    private var subscription: StreamSubscription?
    /// The relay for events, and their epoch. Set before it subscribes.
    private var events: (relay: EventRelay<EncodedStream.EncodedValue>, epoch: String)?

    init(_ relay: StateRelay<EncodedStream.State>, on loop: SystemShard) {
        self.relay = relay
        self.loop = loop
    }

    /// Subscribes to the events after a bookmark. On the loop.
    ///
    /// - Parameter stream: receives the events. It is not retained.
    func subscribe(
        to hub: StreamProducer, for stream: EncodedStream, behind bookmark: EventBookmark, attach: (Broadcaster) -> Void
    ) {
        events = stream.each.map { ($0, bookmark.epoch) }
        subscribe(to: hub, behind: bookmark.sequence, attach: attach)
    }

    /// Subscribes to a stream. On the loop.
    ///
    /// - Parameters:
    ///   - number: the sequence number up to which it needs nothing; nil for a new subscriber.
    ///   - attach: attaches a broadcaster that was created for this subscriber.
    func subscribe(to hub: StreamProducer, behind number: UInt64? = nil, attach: (Broadcaster) -> Void) {
        loop.subscribe(
            to: hub,
            { broadcaster in
                let created = StreamSubscription(
                    streamID: [], broadcaster: broadcaster, subscriber: self, isFiltered: true)
                if let number { created.markSent(upTo: number) }
                subscription = created
                return created
            }, attach: attach)
    }

    /// Ends the subscription after the last reader has ended.
    func endSubscription() {
        if let subscription { subscription.broadcaster.remove(subscription) }
        subscription = nil
    }

    var isLocal: Bool { true }
    var isWritable: Bool { true }
    var isAwaited: Bool { false }
    func inOneWrite(_ body: () -> Void) { body() }
    func didBlock(_ subscription: StreamSubscription) {}
    func streamDidCatchUp() {}

    /// Filters and events deliver only whole values.
    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        let text = Array(StreamDataEncoding.data(inSuffix: suffix.bytes, sequence: subscription.sent))
        guard let events else { return relay.setValue(text) }
        relay.setValue(nil)
        let bookmark = EventBookmark(epoch: events.epoch, sequence: subscription.sent)
        events.relay.send(
            EncodedStream.EncodedValue(text: text, count: relay.currentValue.count, bookmark: bookmark))
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        self.subscription = nil
        relay.finish(.failed(error ?? LocalStreams.actorNotFound))
        events?.relay.finish()
    }
}
