internal import Networking
internal import Transports
internal import Trebuchet
internal import TrebuchetActors

/// The owner's end of a shared-stream channel, over which another node receives streams for its clients.
final class SharedStreamChannel: NodeChannelHandler, SharedStreamPublisherOwner, Sendable {
    let reactor: Reactor
    private let channel: NodeChannel
    private let node: NodeShard
    private var shard: ServerShard { node.shard }
    private let window: FlowControlWindow
    private let pendingDeliveries: PendingDeliveries
    private let state: LoopVariable<State>

    /// The publishers and the message that is being received, on the reactor.
    private struct State {
        /// The publishers of shared streams, by the index of the reactor that the actors belong to.
        var feeds: [Int: SharedStreamPublisher] = [:]
        /// The publisher of each stream, by stream number.
        var publishers: [UInt64: SharedStreamPublisher] = [:]
        /// The received parts of an incomplete message.
        var parts: [UInt8] = []
    }

    init(_ channel: NodeChannel, at node: NodeShard, _ pendingDeliveries: PendingDeliveries) {
        (self.channel, self.node, reactor) = (channel, node, node.shard.reactor)
        (window, self.pendingDeliveries) = (FlowControlWindow(channel), pendingDeliveries)
        state = LoopVariable(State(), on: reactor)
    }

    func didEnd(_ number: UInt64) { reactor.execute { self.state.value.publishers[number] = nil } }

    /// The number of streams, for tests; on its reactor.
    var streamCount: Int { state.value.publishers.count }

    // MARK: NodeChannelHandler

    func receive(_ frame: NodeFrame) {
        switch frame.kind {
        case .toOwnerPart:
            guard state.value.parts.count + frame.payload.count <= shard.limits.messages.inboundBytes else {
                return channelDidBreak(received: 0)
            }
            state.value.parts += frame.payload
        case .toOwner:
            let bytes = state.value.parts.isEmpty ? frame.payload : state.value.parts + frame.payload
            state.value.parts = []
            if let message = SharedStreamMessage(bytes) { receive(message) }
        case .acknowledgement:
            guard window.acknowledge(Int(clamping: frame.number ?? 0)) else { return }
            for feeds in state.value.feeds.values { feeds.shard.reactor.run { feeds.linkDidBecomeWritable() } }
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
            guard let feeds = state.value.publishers.removeValue(forKey: message.number) else { return }
            let mayReturn = !message.payload.isEmpty
            feeds.shard.reactor.run { feeds.endStream(message.number, mayReturn: mayReturn) }
        default: break
        }
    }

    private func startStream(_ number: UInt64, _ request: SharedStreamRequest) {
        // The authorization query of a client's node has activated the actor. If it was deactivated since, the next query
        // activates it again.
        // Calls of the reactor that waited for the activation may still have to begin; the stream does not wait for them.
        guard let record = shard.directory.record(ActorName(request.actor)), record.isClustered,
            !record.type.isGated, let there = record.home?.serverShard?.node
        else {
            return window.send(SharedStreamMessage.bytes(.moved, number))
        }
        let feeds =
            state.value.feeds[there.shard.index] ?? SharedStreamPublisher(self, window, pendingDeliveries, at: there)
        state.value.feeds[there.shard.index] = feeds
        state.value.publishers[number] = feeds
        there.shard.reactor.run { feeds.startStream(number, request, of: record) }
    }

    func channelDidBreak(received: UInt64) {
        channel.send(.ended)
        close()
    }

    func channelDidOverflow(received: UInt64) { channelDidBreak(received: received) }

    private func close() {
        channel.discard()
        for feeds in state.value.feeds.values { feeds.shard.reactor.run { feeds.close() } }
        (state.value.feeds, state.value.publishers) = ([:], [:])
    }
}
