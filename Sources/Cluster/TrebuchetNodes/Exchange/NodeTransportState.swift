internal import Networking
internal import TrebuchetCluster

/// The state under the lock of `NodeTransport`: the peers, and the local ends of channels.
struct NodeTransportState {
    /// The identity of a node channel.
    struct ChannelEntry: Hashable {
        let node: ClusterNode
        let number: UInt64
        /// True if this node has opened the channel.
        let isOwn: Bool
    }

    /// The handling of messages of other nodes.
    enum Acceptance {
        case accepted
        /// The last accepted messages are still being handled.
        case refused
        /// Each node that has sent messages receives a report.
        case refusedAndReported
    }

    /// An end that was shed, with the number of messages that its peer received.
    typealias Overflown = (end: any NodeChannelHandler, received: UInt64)

    /// The number of the newest epoch: epochs are unique, even after a peer was removed.
    private var epochs: UInt64 = 0
    var peers: [ClusterNode: PeerState] = [:]
    var ends: [ChannelEntry: any NodeChannelHandler] = [:]
    /// The numbers of messages accepted for channels that this node has opened, by channel.
    var acceptedMessages: [UInt64: UInt64] = [:]
    var lastChannelNumber: UInt64 = 0
    var inbox: (any ClusterSubscription)?
    /// Direct links to nodes, which bypass the engine.
    var direct: NodeLinks?
    var isClosed = false
    var acceptance = Acceptance.accepted
    /// The number of accepted messages whose frames are being passed on.
    var dispatches = 0
    /// The nodes to which it was reported that no further messages are accepted.
    var informed: Set<ClusterNode> = []
    /// The number of liveness rounds so far.
    var rounds = 0
    /// The number of the last reading of the live nodes.
    var liveReads: UInt64 = 0
    /// True if this node is being stopped.
    var isLeaving = false

    /// Ends the channels to a node with the most waiting bytes, until at most `limit` bytes wait.
    mutating func closeLargestChannels(_ node: ClusterNode, to limit: Int) -> [Overflown] {
        guard let peer = peers[node] else { return [] }
        func channel(_ frame: NodeFrame) -> ChannelEntry {
            ChannelEntry(node: node, number: frame.channelID, isOwn: !frame.kind.isToClientNode)
        }
        var weights: [ChannelEntry: (bytes: Int, messages: UInt64)] = [:]
        for waiting in peer.waiting {
            let frame = waiting.frame
            let weight = weights[channel(frame)] ?? (0, 0)
            weights[channel(frame)] = (
                weight.bytes + frame.byteCount, weight.messages + (frame.kind == .toOwner ? 1 : 0)
            )
        }
        var overflown: [Overflown] = []
        var removed: Set<ChannelEntry> = []
        var left = peer.waitingBytes
        for (channel, weight) in weights.sorted(by: { $0.value.bytes > $1.value.bytes }) where left > limit {
            removed.insert(channel)
            left -= weight.bytes
            let sent = channel.isOwn ? acceptedMessages.removeValue(forKey: channel.number) ?? 0 : 0
            if let end = ends.removeValue(forKey: channel) {
                overflown.append((end, sent - min(sent, weight.messages)))
            }
        }
        peers[node]?.remove { removed.contains(channel($0.frame)) }
        return overflown
    }

    /// Removes all channels to a node, and starts a new epoch after a loss of this node.
    ///
    /// - Returns: the ends of the channels, each with the number of its messages that may have arrived.
    mutating func closeChannels(
        to node: ClusterNode, startsEpoch: Bool, _ undelivered: [NodeFrame], accepted last: UInt64?
    ) -> [(end: any NodeChannelHandler, received: UInt64)] {
        let refused = last.flatMap { last in peers[node].map { Array($0.requests(after: last)) } } ?? []
        let waiting = peers[node]?.clear() ?? []
        if startsEpoch, peers[node] != nil {
            let epoch = nextEpoch(isFirst: false)
            peers[node]?.startEpoch(epoch)
        }
        var counts: [UInt64: UInt64] = [:]
        for channelID in refused { counts[channelID, default: 0] += 1 }
        for frame in undelivered + waiting.map(\.frame) where frame.kind == .toOwner {
            counts[frame.channelID, default: 0] += 1
        }
        var closed: [(end: any NodeChannelHandler, received: UInt64)] = []
        for channel in ends.keys.filter({ $0.node == node }) {
            let sent = channel.isOwn ? acceptedMessages.removeValue(forKey: channel.number) ?? 0 : 0
            guard let end = ends.removeValue(forKey: channel) else { continue }
            closed.append((end, channel.isOwn ? sent - min(sent, counts[channel.number] ?? 0) : 0))
        }
        return closed
    }

    /// Returns an even number for the first epoch between two nodes, an odd one after a loss.
    mutating func nextEpoch(isFirst: Bool) -> UInt64 {
        epochs += 1
        return epochs * 2 + (isFirst ? 0 : 1)
    }

    /// Creates the peer state of a node if it does not exist.
    mutating func addPeer(_ node: ClusterNode) {
        if peers[node] == nil { peers[node] = PeerState(epoch: nextEpoch(isFirst: true)) }
    }
}
