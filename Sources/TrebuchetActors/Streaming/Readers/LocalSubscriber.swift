internal import Bytes
internal import Relays
internal import TrebuchetWire

/// A reader in this process of what a filter lets through of a state, or of events behind a place: a subscriber as a connection is.
///
/// `@unchecked Sendable`: `subscription` is touched on the loop alone.
final class LocalSubscriber: StreamSubscriber, @unchecked Sendable {
    let relay = StateRelay(EncodedStream.State())
    private let loop: SystemShard
    private var subscription: StreamSubscription?
    /// Where events go to, and their epoch. Set before it subscribes.
    private var events: (relay: EventRelay<EncodedStream.Taken>, epoch: String)?

    init(on loop: SystemShard) { self.loop = loop }

    /// Begins behind an event, on the loop.
    ///
    /// - Parameter stream: gets the events. It is not held.
    func subscribe(
        to hub: StreamHub, for stream: EncodedStream, behind place: EventBookmark, attach: (Broadcaster) -> Void
    ) {
        events = stream.each.map { ($0, place.epoch) }
        subscribe(to: hub, behind: place.number, attach: attach)
    }

    /// - Parameters:
    ///   - number: of the last version that it needs nothing of; nil when it is new.
    ///   - attach: has a broadcaster that was made for it attached. On the loop.
    func subscribe(to hub: StreamHub, behind number: UInt64? = nil, attach: (Broadcaster) -> Void) {
        loop.subscribe(
            to: hub,
            { broadcaster in
                let made = StreamSubscription(
                    streamID: [], broadcaster: broadcaster, subscriber: self, isFiltered: true)
                if let number { made.begin(behind: number) }
                subscription = made
                return made
            }, attach: attach)
    }

    /// Nobody reads any more. From anywhere.
    func leave() {
        loop.reactor.run {
            if let subscription = self.subscription { subscription.broadcaster.remove(subscription) }
            self.subscription = nil
        }
    }

    var isLocal: Bool { true }
    var isWritable: Bool { true }
    var isAwaited: Bool { false }
    func inOneWrite(_ body: () -> Void) { body() }
    func fellBehind(_ subscription: StreamSubscription) {}
    func streamsMayShow() {}

    /// Of a filter, and of events, there are whole values alone.
    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        let text = Array(StreamDataParts.data(inSuffix: suffix.bytes, sequence: subscription.sent))
        guard let events else { return relay.take(text) }
        relay.take(nil)
        let bookmark = EventBookmark(epoch: events.epoch, number: subscription.sent)
        events.relay.send(
            EncodedStream.Taken(text: text, count: relay.currentValue.count, bookmark: bookmark))
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        self.subscription = nil
        relay.end(.failed(error ?? LocalStreams.actorGone))
        events?.relay.finish()
    }
}
