internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetCluster

/// Actors that live on one node of several.
extension ServerShard {
    /// Calls `answer` with the owner of a slot: at once, or after the coordination store has responded.
    ///
    /// - Returns: The waiting lookup; nil when it was answered.
    @discardableResult
    func withOwner(of slot: ClusterSlot, _ answer: @escaping SlotOwnerLookups.Completion) -> SlotLookupWaiter? {
        guard let queues = queues else {
            answer(.failure(TrebuchetError(.unavailable, "the server is not a cluster node")))
            return nil
        }
        return queues.withOwner(of: slot, waitingUpTo: limits.callTimeout, answer)
    }

    /// Returns whether the lease under which an actor lives here is valid. A suspended process may not have noticed the end of its
    /// lease, and another node may then have changed the actor.
    func isOwned(_ record: ActorRecord) -> Bool {
        guard let nodes = context.nodes, let slot = ClusterSlot(record.slot) else { return true }
        return nodes.member.mayStartWork(in: slot)
    }

    /// Looks up the owner of a slot again after a pause: the node does not own it, or has left. A stopping node is not asked again.
    func forgetOwner(of slot: ClusterSlot, _ node: ClusterNode) {
        if let nodes = context.nodes {
            if nodes.exchange.isLeaving(node) {
                nodes.directory.exclude(node, from: slot)
            } else {
                nodes.directory.invalidate(slot, ownedBy: node)
            }
        }
        queues?.retryLookup(of: slot, waitingUpTo: limits.callTimeout)
    }

    /// Indicates whether calls may be on their way to actors that have just moved from this node to another one.
    var hasRecentlyMovedActors: Bool {
        lastClusteredRemoval > 0 && reactor.now &- lastClusteredRemoval < Self.recentMoveInterval.nanoseconds
    }

    private static let recentMoveInterval = Duration.seconds(10)

    private var queues: SlotOwnerLookups? {
        if let slotQueues { return slotQueues }
        slotQueues = context.nodes.map { SlotOwnerLookups($0.directory, on: reactor) }
        return slotQueues
    }

    /// Indicates whether a response or a node waits for the current versions of streams.
    var isAwaited: Bool { !responseBarriers.isEmpty || feeds.contains { $0.hasUnsentStarts } }

    /// Sends other nodes the changes of this reactor's actors, before the responses of the calls that made them.
    func catchUpFeeds() { for feeds in feeds { feeds.catchUp() } }

    /// Executes a notice about an owner on the reactor. May be called on any thread.
    func deliverNotice(_ notice: @escaping @Sendable () -> Void) {
        ownerChanges.willSend()
        reactor.execute {
            self.ownerChanges.didHandle()
            notice()
        }
    }

    /// Indicates whether there is an owner that this turn of the reactor does not know of. It may be this node itself.
    var hasPendingOwnerChanges: Bool { ownerChanges.arePending }

    /// Informs the connections of a slot's new owner, before the previous owner reports the change.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode, isHere: Bool) {
        for connection in connections.values where connection.forwarder != nil || !connection.clusteredStreams.isEmpty {
            connection.ownerDidChange(of: slot, to: node, isHere: isHere)
        }
    }

    /// Moves the streams of actors that have left this node to their next owner.
    func moveStreams(of actors: Set<ActorName>) {
        for connection in Array(connections.values) where !connection.clusteredStreams.isEmpty {
            connection.moveStreams(of: actors)
        }
        for feeds in feeds { feeds.moveStreams(of: actors) }
    }
}
