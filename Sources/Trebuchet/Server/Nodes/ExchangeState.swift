internal import Networking
internal import TrebuchetCluster

/// What `NodeExchange` has under its lock: what it knows of each node, and the ends of lines here.
struct ExchangeState {
    struct Line: Hashable {
        let node: ClusterNode
        let number: UInt64
        /// Whether this node has opened it.
        let isOwn: Bool
    }

    typealias Overflown = (end: any RelayEnd, received: UInt64)

    /// Of the newest epoch: none comes twice, also where a peer was forgotten.
    private var epochs: UInt64 = 0
    var peers: [ClusterNode: NodePeer] = [:]
    var ends: [Line: any RelayEnd] = [:]
    /// Messages that were taken of lines of this node's own.
    var handed: [UInt64: UInt64] = [:]
    var lines: UInt64 = 0
    var inbox: (any ClusterSubscription)?
    /// Links to nodes that can be reached without the engine.
    var direct: DirectLinks?
    var isClosed = false
    /// How often it was looked who lives.
    var rounds = 0
    /// Whether this node is being stopped.
    var isLeaving = false

    /// Ends those lines to a node for which the most waits, until no more waits than that.
    mutating func shed(_ node: ClusterNode, to limit: Int) -> [Overflown] {
        guard let peer = peers[node] else { return [] }
        func line(_ frame: RelayFrame) -> Line { Line(node: node, number: frame.line, isOwn: !frame.kind.isBack) }
        var weights: [Line: (bytes: Int, messages: UInt64)] = [:]
        for waiting in peer.waiting {
            let frame = waiting.frame
            let weight = weights[line(frame)] ?? (0, 0)
            weights[line(frame)] = (
                weight.bytes + frame.byteCount, weight.messages + (frame.kind == .toOwner ? 1 : 0)
            )
        }
        var overflown: [Overflown] = []
        var gone: Set<Line> = []
        var left = peer.waitingBytes
        for (line, weight) in weights.sorted(by: { $0.value.bytes > $1.value.bytes }) where left > limit {
            gone.insert(line)
            left -= weight.bytes
            let sent = line.isOwn ? handed.removeValue(forKey: line.number) ?? 0 : 0
            if let end = ends.removeValue(forKey: line) {
                overflown.append((end, sent - min(sent, weight.messages)))
            }
        }
        peers[node]?.remove { gone.contains(line($0.frame)) }
        return overflown
    }

    /// Even for the first between two nodes, odd behind a loss.
    mutating func nextEpoch(isFirst: Bool) -> UInt64 {
        epochs += 1
        return epochs * 2 + (isFirst ? 0 : 1)
    }

    /// What is known of a node; a new one when it is the first time.
    mutating func know(_ node: ClusterNode) {
        if peers[node] == nil { peers[node] = NodePeer(epoch: nextEpoch(isFirst: true)) }
    }
}
