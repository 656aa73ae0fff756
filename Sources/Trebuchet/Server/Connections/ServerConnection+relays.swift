internal import Bytes
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Actors that live on one node of several: what is asked of those of others goes there.
extension ServerConnection {
    /// A message about an actor of another node's.
    func forward(_ type: ActorType, _ message: borrowing Message) {
        let target = type.target(message.target)
        if let upstream {
            // Its node thought that the actor lives here.
            let callID = message.envelope.pointee.callID
            return upstream.send(
                .refused, Array(callID.isAbsent ? message.bytes(message.envelope.pointee.streamID) : message.callID))
        }
        guard mayPass(target.name, message), let nodes = shard.parts.nodes else { return }
        let relays = relays ?? ConnectionRelays(self, nodes)
        self.relays = relays
        if let excess = relays.excess { return fail(message, excess) }
        let isRepeatable: Bool
        var stream: AskedStream?
        switch target {
        case .method(let method):
            isRepeatable =
                !message.envelope.pointee.session.isAbsent && method._withUnsafeGuaranteedRef { $0.isIdempotent }
        case .stream(let name):
            isRepeatable = true
            let resumed = message.kind == .streamResume ? ownName(in: message) : nil
            stream = AskedStream(actor: ActorName(message.actorName), target: name, resumed: resumed)
        case .program, .unknown: isRepeatable = false
        }
        relays.forward(message, stream: stream, isRepeatable: isRepeatable)
    }

    /// A message that was on its way to another node, and is for this one.
    func handleAgain(_ message: borrowing Message) {
        switch message.kind {
        case .invocation: invoke(message)
        case .repeat: receiveRepeat(message)
        default: resume(message)
        }
    }

    /// Gives the client a message as its owner has written it.
    func passOn(_ message: UnsafeRawBufferPointer) {
        guard isOpen else { return }
        link.send { $0.append(message) }
    }

    // MARK: Actors that go to another node

    /// Streams of actors that live here no more go on at their next owner.
    func moveStreams(of actors: Set<ActorName>) {
        for (streamID, placed) in placed where actors.contains(ActorName(placed.actor)) {
            if let subscription = streams[streamID] { move(subscription, placed) }
        }
    }

    /// Whether a stream that its actor has ended goes on elsewhere: the actor went to another node.
    func movesAtEnd(_ subscription: StreamSubscription, _ reason: StreamEndReason) -> Bool {
        guard reason == .actorTerminated, let placed = placed[subscription.streamID], let nodes = shard.parts.nodes,
            !nodes.owns(placed.actor)
        else { return false }
        move(subscription, placed)
        return true
    }

    private func move(_ subscription: StreamSubscription, _ placed: PlacedStream) {
        let streamID = subscription.streamID
        if let upstream {
            forget(subscription)
            return upstream.send(.moved, streamID)
        }
        guard let nodes = shard.parts.nodes else { return }
        let stream = RelayedStream(
            placed, streamID: streamID, epoch: subscription.broadcaster.hub.epoch, sequence: subscription.sent)
        forget(subscription)
        let relays = relays ?? ConnectionRelays(self, nodes)
        self.relays = relays
        relays.resume(stream)
    }
}
