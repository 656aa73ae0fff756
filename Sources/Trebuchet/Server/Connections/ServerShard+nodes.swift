internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetCluster

/// Actors that live on one node of several.
extension ServerShard {
    /// Which node owns a slot: at once, or when the engine has said so.
    func withOwner(of slot: ClusterSlot, _ answer: @escaping SlotQueues.Answer) {
        guard let queues = queues else {
            return answer(.failure(TrebuchetError(.unavailable, "the server is no node of a cluster")))
        }
        queues.withOwner(of: slot, waitingUpTo: limits.callTimeout, answer)
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

    /// A connection of another node's has ended.
    ///
    /// - Parameter time: how long it is remembered what its calls were answered; nil when there were none.
    func forget(_ upstream: Upstream, of name: ConnectionName, after time: Duration?) {
        let (names, session) = (answers.names, upstream.session)
        guard let time else { return names.forget(carried: session) }
        reactor.schedule(after: time) { [weak self] in
            guard self?.connections[name.number] == nil else { return }
            names.forget(carried: session)
        }
    }

    /// Streams of actors that live here no more go on at their next owner.
    func moveStreams(of actors: Set<ActorName>) {
        for connection in Array(connections.values) where !connection.placed.isEmpty {
            connection.moveStreams(of: actors)
        }
    }
}
