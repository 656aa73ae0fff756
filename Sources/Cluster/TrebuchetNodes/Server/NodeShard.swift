internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// The part of a cluster node on one reactor: owner lookups, notices about owners, and the streams that other nodes receive.
final class NodeShard: ShardRouter, Sendable {
    private static let recentMoveInterval = Duration.seconds(10)

    let shard: ServerShard
    let nodes: ClusterRouter
    /// Owner lookups that are under way.
    let lookups: SlotOwnerLookups
    private let feedList: LoopVariable<[SharedStreamPublisher]>
    /// The owners of slots according to the latest notices.
    private let announcedOwners: LoopVariable<[ClusterSlot: ClusterNode]>
    /// The number of notices about owners that were sent to the reactor and not handled yet.
    private let pendingNotices = Atomic<Int>(0)

    init(_ shard: ServerShard, of nodes: ClusterRouter) {
        (self.shard, self.nodes) = (shard, nodes)
        lookups = SlotOwnerLookups(nodes.directory, on: shard.reactor)
        feedList = LoopVariable([], on: shard.reactor)
        announcedOwners = LoopVariable([:], on: shard.reactor)
    }

    /// Streams of actors of this reactor that other nodes receive for their clients; one object for each node connection.
    var feeds: [SharedStreamPublisher] {
        get { feedList.value }
        _modify { yield &feedList.value }
    }

    // MARK: Owners

    /// Calls `answer` with the owner of a slot: at once, or after the coordination store has responded.
    ///
    /// - Returns: The waiting lookup; nil when it was answered.
    func withOwner(of slot: ClusterSlot, _ answer: @escaping SlotOwnerLookups.Completion) -> SlotLookupWaiter? {
        lookups.withOwner(of: slot, waitingUpTo: shard.limits.calls.timeout, answer)
    }

    /// Looks up the owner of a slot again after a pause: the node does not own it, or has left. A stopping node is not asked again.
    func forgetOwner(of slot: ClusterSlot, _ node: ClusterNode) {
        if nodes.exchange.isLeaving(node) {
            nodes.directory.exclude(node, from: slot)
        } else {
            nodes.directory.invalidate(slot, ownedBy: node)
        }
        lookups.retryLookup(of: slot, waitingUpTo: shard.limits.calls.timeout)
    }

    /// Indicates whether calls may be on their way to actors that have just moved from this node to another one.
    var hasRecentlyMovedActors: Bool {
        let removal = shard.lastClusteredRemoval
        return removal > 0 && shard.reactor.now &- removal < Self.recentMoveInterval.nanoseconds
    }

    /// Executes a notice about an owner on the reactor. May be called on any thread.
    func deliverNotice(_ notice: @escaping @Sendable () -> Void) {
        pendingNotices.add(1, ordering: .sequentiallyConsistent)
        shard.reactor.execute {
            self.pendingNotices.subtract(1, ordering: .sequentiallyConsistent)
            notice()
        }
    }

    /// Returns the slot's owner according to the latest notice if it is not `node`; nil if it is, or without a notice.
    func laterOwner(of slot: ClusterSlot, than node: ClusterNode) -> ClusterNode? {
        announcedOwners.value[slot].flatMap { $0 == node ? nil : $0 }
    }

    /// Indicates whether there is an owner that this turn of the reactor does not know of. It may be this node itself.
    var hasPendingOwnerChanges: Bool { pendingNotices.load(ordering: .sequentiallyConsistent) != 0 }

    /// Informs the connections of a slot's new owner, before the previous owner reports the change.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode, isHere: Bool) {
        announcedOwners.value[slot] = node
        // Clients of this reactor may have joined streams of the previous owner since the node learned of the new one.
        nodes.shared.slotDidMove(slot, to: node)
        for connection in shard.connections.values {
            if !isHere, connection.hasMovableStreams || connection.forwarder != nil {
                connection.moveStreams(inPartition: slot.number)
            }
            connection.callForwarder?.ownerDidChange(of: slot, to: node)
        }
    }

    // MARK: ShardRouter

    func mayServe(_ record: ActorRecord) -> Bool {
        guard let slot = ClusterSlot(record.partition) else { return true }
        return nodes.member.mayStartWork(in: slot)
    }

    func makeForwarder(for connection: ServerConnection) -> any ConnectionForwarder {
        RemoteCallForwarder(connection, self)
    }

    func catchUpFeeds() { for feeds in feeds { feeds.catchUp() } }

    var isAwaited: Bool { feeds.contains { $0.hasUnsentStarts } }

    func moveStreams(of actors: Set<ActorName>) { for feeds in feeds { feeds.moveStreams(of: actors) } }

    func releaseReferences() { feeds = [] }
}

extension ServerContext {
    /// The cluster part of the server; nil outside a cluster.
    var nodes: ClusterRouter? { router as? ClusterRouter }
}

extension ServerShard {
    /// The cluster part of the reactor; nil outside a cluster, and after shutdown.
    var node: NodeShard? { router as? NodeShard }
}

extension ServerConnection {
    /// The calls and streams of the connection at other nodes; nil before the first one.
    var callForwarder: RemoteCallForwarder? { forwarder as? RemoteCallForwarder }
}
