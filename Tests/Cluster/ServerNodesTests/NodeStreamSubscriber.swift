import NodeSupport
import Networking
import Synchronization
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Subscribes to a node's actors as another node does, and acknowledges messages when the test requests it.
final class NodeStreamSubscriber: NodeChannelHandler {
    let reactor = ReactorGroup.forServer(count: 1).reactors[0]
    let exchange: NodeTransport
    private let opened = Mutex<NodeChannel?>(nil)
    private let parts = Mutex<[UInt8]>([])
    private let got = Mutex<[NodeFrame]>([])

    init(_ engine: MemoryEngine, of owner: Node) async throws {
        exchange = NodeTransport(engine, as: try ClusterNode(name: "taker"), open: { _, _ in nil })
        try await exchange.start()
        let channel = exchange.makeChannel(to: owner.member.node, self)
        opened.withLock { $0 = channel }
        // It owns no slots, but must be known as a node before its channel opens.
        exchange.send(
            [
                NodeFrame(.leaving, channelID: 0),
                NodeFrame(.open, channelID: channel.number, SharedStreamMessage.opening),
            ],
            to: owner.member.node)
    }

    private var channel: NodeChannel {
        guard let channel = opened.withLock({ $0 }) else { preconditionFailure("it opens one when it is made") }
        return channel
    }

    /// The owner's end of its channel.
    func channel(at owner: Node) throws -> NodeChannel {
        guard let exchange = owner.server.context.nodes?.exchange else { throw CancellationError() }
        return NodeChannel(exchange: exchange, node: self.exchange.node, number: channel.number, isOwn: false)
    }

    func close() {
        channel.send(.close)
        exchange.close()
    }

    // MARK: Outbound

    /// - Parameter seen: the position after which the stream is to start.
    func begin(
        _ number: UInt64, _ actor: String, _ target: String, behind seen: (epoch: String, last: UInt64) = ("", 0)
    ) {
        let beginning = SharedStreamRequest(
            actor: actor, target: target, epoch: seen.epoch, sequence: seen.last, isFresh: true)
        channel.send(SharedStreamMessage.bytes(.begin, number, beginning), part: .toOwnerPart, last: .toOwner)
    }

    func end(_ number: UInt64) {
        channel.send(SharedStreamMessage.bytes(.end, number), part: .toOwnerPart, last: .toOwner)
    }

    func take(_ bytes: Int) { channel.send(.acknowledgement, number: UInt64(bytes)) }

    // MARK: Inbound

    /// The received messages, each in one frame.
    var frames: [NodeFrame] { got.withLock { $0 } }
    var byteCount: Int { frames.reduce(0) { $0 + ($1.kind == .toClient ? $1.payload.count : 0) } }

    func messages(_ number: UInt64) -> [SharedStreamMessage] {
        frames.compactMap { SharedStreamMessage($0.payload) }.filter { $0.number == number }
    }

    func kinds(_ number: UInt64) -> [SharedStreamMessage.Kind] { messages(number).map(\.kind) }

    func receive(_ frame: NodeFrame) {
        guard frame.kind != .toClientPart else { return parts.withLock { $0 += frame.payload } }
        let before = parts.withLock { parts in
            defer { parts = [] }
            return parts
        }
        got.withLock { $0.append(NodeFrame(frame.kind, channelID: frame.channelID, before + frame.payload)) }
    }

    func channelDidBreak(received: UInt64) {}
    func channelDidOverflow(received: UInt64) {}
}

extension Node {
    /// The shared streams of its actors to other nodes.
    func feeds() async -> [SharedStreamPublisher] {
        var feeds: [SharedStreamPublisher] = []
        for shard in server.shards { feeds += await shard.reactor.perform { shard.node?.feeds ?? [] } }
        return feeds
    }
}
