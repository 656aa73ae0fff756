internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetCluster

/// Actors that live on one node of several.
extension ServerShard {
    /// Which node owns a slot: at once, or when the engine has said so.
    ///
    /// - Returns: the place in which it waits; nil when it was answered.
    @discardableResult
    func withOwner(of slot: ClusterSlot, _ answer: @escaping SlotQueues.Answer) -> SlotWaiter? {
        guard let queues = queues else {
            answer(.failure(TrebuchetError(.unavailable, "the server is no node of a cluster")))
            return nil
        }
        return queues.withOwner(of: slot, waitingUpTo: limits.callTimeout, answer)
    }

    /// Whether the lease under which an actor lives here goes on. One that is over may not have been noticed yet, by a process that stood
    /// still: then another node may have changed the actor.
    func isOwned(_ record: ActorRecord) -> Bool {
        guard let nodes = parts.nodes, let slot = ClusterSlot(record.slot) else { return true }
        return nodes.member.keeps(slot)
    }

    /// A node has said that it does not own a slot, or is gone: who owns it is asked for anew, in a moment.
    func forgetOwner(of slot: ClusterSlot, _ node: ClusterNode) {
        parts.nodes?.directory.forget(slot, ownedBy: node)
        queues?.askAgain(slot, waitingUpTo: limits.callTimeout)
    }

    /// Whether calls may be on their way to actors of this node's that have just gone to another one.
    var hasJustLetGo: Bool { placedUntil > 0 && reactor.now &- placedUntil < Self.lettingGo.nanoseconds }

    private static let lettingGo = Duration.seconds(10)

    private var queues: SlotQueues? {
        if let slotQueues { return slotQueues }
        slotQueues = parts.nodes.map { SlotQueues($0.directory, on: reactor) }
        return slotQueues
    }

    /// Whether somebody waits for what streams show.
    var isAwaited: Bool { !answersBehindStreams.isEmpty || feeds.contains { $0.hasUnshown } }

    /// Sends other nodes what actors of this reactor have changed, before the answers of the calls that have changed it.
    func catchUpFeeds() { for feeds in feeds { feeds.catchUp() } }

    /// Has the reactor hear of an owner. From anywhere.
    func willHear(_ news: @escaping @Sendable () -> Void) {
        ownerNews.willTell()
        reactor.execute {
            self.ownerNews.didHear()
            news()
        }
    }

    /// Whether there is an owner that this turn of the reactor does not know of. It may be this node itself.
    var hasUnheardOwners: Bool { ownerNews.areUnheard }

    /// A node owns a slot from now on, and nobody here has heard of it.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode, isHere: Bool) {
        for connection in connections.values where connection.relays != nil || !connection.placed.isEmpty {
            connection.ownerDidChange(of: slot, to: node, isHere: isHere)
        }
    }

    /// Streams of actors that live here no more go on at their next owner.
    func moveStreams(of actors: Set<ActorName>) {
        for connection in Array(connections.values) where !connection.placed.isEmpty {
            connection.moveStreams(of: actors)
        }
        for feeds in feeds { feeds.moveStreams(of: actors) }
    }
}
