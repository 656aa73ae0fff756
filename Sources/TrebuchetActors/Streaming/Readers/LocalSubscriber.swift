internal import Bytes
internal import Relays
internal import TrebuchetWire

/// A reader in this process of what a filter lets through of a state: a subscriber as a connection is.
///
/// `@unchecked Sendable`: `subscription` is touched on the loop alone.
final class LocalSubscriber: StreamSubscriber, @unchecked Sendable {
    let relay = StateRelay(EncodedStream.State())
    private let loop: SystemShard
    private var subscription: StreamSubscription?

    init(on loop: SystemShard) { self.loop = loop }

    /// - Parameter attach: has a broadcaster that was made for it attached. On the loop.
    func subscribe(to hub: StreamHub, attach: (Broadcaster) -> Void) {
        loop.subscribe(
            to: hub,
            { broadcaster in
                let made = StreamSubscription(
                    streamID: [], broadcaster: broadcaster, subscriber: self, isFiltered: true)
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
    func fellBehind() {}
    func streamsMayShow() {}

    /// Of a filter there are whole values alone.
    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        relay.take(Array(StreamDataParts.data(inSuffix: suffix.bytes, sequence: subscription.sent)))
    }

    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        self.subscription = nil
        relay.end(.failed(error ?? LocalStreams.actorGone))
    }
}
