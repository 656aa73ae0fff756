internal import Networking
internal import Trebuchet
internal import TrebuchetActors

/// The owner's end of a shared-stream channel, over which another node receives streams for its clients.
///
/// `@unchecked Sendable`: used on its reactor only, except for constants.
final class SharedStreamChannel: NodeChannelHandler, SharedStreamPublisherOwner, @unchecked Sendable {
    let reactor: Reactor
    private let channel: NodeChannel
    private let node: NodeShard
    private var shard: ServerShard { node.shard }
    private let window: FlowControlWindow
    private let pendingDeliveries: PendingDeliveries
    /// The publishers of shared streams, by the index of the reactor that the actors belong to.
    private var feeds: [Int: SharedStreamPublisher] = [:]
    /// The publisher of each stream, by stream number.
    private var publishers: [UInt64: SharedStreamPublisher] = [:]
    /// The received parts of an incomplete message.
    private var parts: [UInt8] = []

    init(_ channel: NodeChannel, at node: NodeShard, _ pendingDeliveries: PendingDeliveries) {
        (self.channel, self.node, reactor) = (channel, node, node.shard.reactor)
        (window, self.pendingDeliveries) = (FlowControlWindow(channel), pendingDeliveries)
    }

    func didEnd(_ number: UInt64) { reactor.execute { self.publishers[number] = nil } }

    /// The number of streams, for tests; on its reactor.
    var streamCount: Int { publishers.count }

    // MARK: NodeChannelHandler

    func receive(_ frame: NodeFrame) {
        switch frame.kind {
        case .toOwnerPart:
            guard parts.count + frame.payload.count <= shard.limits.messages.inboundBytes else {
                return channelDidBreak(received: 0)
            }
            parts += frame.payload
        case .toOwner:
            let bytes = parts.isEmpty ? frame.payload : parts + frame.payload
            parts = []
            if let message = SharedStreamMessage(bytes) { receive(message) }
        case .acknowledgement:
            guard window.acknowledge(Int(clamping: frame.number ?? 0)) else { return }
            for feeds in feeds.values { feeds.shard.reactor.run { feeds.linkDidBecomeWritable() } }
        case .close: close()
        default: break
        }
    }

    private func receive(_ message: SharedStreamMessage) {
        switch message.kind {
        case .begin:
            guard let request = message.decoded(SharedStreamRequest.self) else { return }
            startStream(message.number, request)
        case .end:
            guard let feeds = publishers.removeValue(forKey: message.number) else { return }
            let mayReturn = !message.payload.isEmpty
            feeds.shard.reactor.run { feeds.endStream(message.number, mayReturn: mayReturn) }
        default: break
        }
    }

    private func startStream(_ number: UInt64, _ request: SharedStreamRequest) {
        // The authorization query of a client's node has activated the actor. If it was deactivated since, the next query
        // activates it again.
        guard case .ready(let record) = shard.location(of: ActorName(request.actor)), record.isClustered,
            !record.type.isGated, let there = record.home?.serverShard?.node
        else {
            return window.send(SharedStreamMessage.bytes(.moved, number))
        }
        let feeds = feeds[there.shard.index] ?? SharedStreamPublisher(self, window, pendingDeliveries, at: there)
        self.feeds[there.shard.index] = feeds
        publishers[number] = feeds
        there.shard.reactor.run { feeds.startStream(number, request, of: record) }
    }

    func channelDidBreak(received: UInt64) {
        channel.send(.ended)
        close()
    }

    func channelDidOverflow(received: UInt64) { channelDidBreak(received: received) }

    private func close() {
        channel.discard()
        for feeds in feeds.values { feeds.shard.reactor.run { feeds.close() } }
        (feeds, publishers) = ([:], [:])
    }
}
