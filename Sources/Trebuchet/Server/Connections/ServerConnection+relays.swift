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
            if let name = ownName(in: message) { return upstream.send(.moved, name) }
            return upstream.send(message.kind == .repeat ? .repeatElsewhere : .refused, Array(message.callID))
        }
        if let relays, message.kind != .streamResume, postpones(message, relays) { return }
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
            if let resumed { leave(resumed) }
            stream = AskedStream(actor: ActorName(message.actorName), target: name, resumed: resumed)
        case .program, .unknown: isRepeatable = false
        }
        if stream == nil { shard.counts.count(.callsForwarded) }
        guard let stream else { return relays.forward(message, isRepeatable: isRepeatable) }
        do {
            // Its owner counts it too, but for this node alone.
            let filter = try filter(in: message)
            let stake = try stake(filtered: !message.envelope.pointee.filter.isAbsent)
            relays.forward(message, beginning: stream, filter, stake)
        } catch {
            fail(message, error)
        }
    }

    /// Whether a call stands behind others of its actor's that are at another node, or come back from there, or behind streams that are
    /// to be taken up. It is made when those are through.
    func standsBehindOthers(_ message: borrowing Message) -> Bool {
        guard let relays else { return false }
        if postpones(message, relays) { return true }
        guard hasCallsElsewhere, relays.hasEarlier(of: ClusterSlot(of: message.actorName)),
            let type = shard.directory.placedType(of: ActorName(message.actorName))
        else { return false }
        forward(type, message)
        return true
    }

    /// Whether a call is made, or cancelled, when the reactor has heard of owners: it is not to be ahead of what its streams have to know, nor of a call
    /// before it.
    func postpones(_ message: borrowing Message, _ relays: ConnectionRelays) -> Bool {
        guard !isCounted, !relays.isMakingPostponed, shard.hasUnheardOwners || relays.postponed > 0 else {
            return false
        }
        let kept = KeptMessage(message)
        relays.postponed += 1
        shard.reactor.execute {
            guard let relays = self.relays else { return }
            relays.postponed -= 1
            relays.isMakingPostponed = true
            defer { relays.isMakingPostponed = false }
            kept.withMessage { self.handle($0) }
        }
        return true
    }

    /// A message that was on its way to another node, and is for this one. It has been counted.
    func handleAgain(_ message: borrowing Message) {
        withoutCounting { handle(message) }
    }

    /// Handles what `body` does in place of a call that has been withdrawn: it keeps the deadline of that call, and what the rules have
    /// said of it. Without this a call that comes back again and again would never end.
    func continuing(_ call: RunningCall, _ body: () -> Void) {
        let before = shard.continued
        shard.continued = (call, self)
        defer { shard.continued = before }
        body()
    }

    /// The call that the message in hand was before. Nobody else takes it.
    func takeContinued() -> RunningCall? {
        guard let continued = shard.continued, continued.connection === self else { return nil }
        shard.continued = nil
        return continued.call
    }

    /// The same for a call that may have begun.
    func repeatAgain(_ message: borrowing Message) {
        guard message.kind == .invocation else { return handleAgain(message) }
        message.withRepeat { handleAgain($0) }
    }

    private func handle(_ message: borrowing Message) {
        switch message.kind {
        case .invocation: invoke(message)
        case .repeat: receiveRepeat(message)
        case .cancel: cancel(message)
        default: resume(message)
        }
    }

    /// What `body` handles is not the client's doing, or was counted before.
    func withoutCounting(_ body: () -> Void) {
        isCounted = true
        defer { isCounted = false }
        body()
    }

    /// Whether a node takes up a stream with it that its client has begun long ago.
    func isOfNode(_ message: borrowing Message) -> Bool {
        upstream != nil && ownName(in: message) == nil && LineCallID(message.callID)?.isOfNode == true
    }

    /// What the client numbers a call whose answer is kept; nil for what is no number.
    func number(of message: borrowing Message) -> UInt64? {
        upstream == nil ? UInt64(message.text(message.envelope.pointee.callID)) : LineCallID(message.callID)?.number
    }

    /// Gives the client a message as its owner has written it.
    func passOn(_ message: UnsafeRawBufferPointer) {
        guard isOpen else { return }
        link.send { $0.append(message) }
    }

    /// The same, under the client's callID.
    func passOn(_ message: borrowing Message, as callID: [UInt8]) {
        if shard.states.isMarked { catchUpStreams() }
        let renamed = message.renamed(callID)
        guard renamed.count <= largestMessage else { return fail(callID, tooLarge("the result", renamed.count)) }
        renamed.withUnsafeBytes { passOn($0) }
    }

    /// Takes up a stream of an actor that lives here now.
    func takeUp(_ stream: RelayedStream) {
        guard shard.parts.nodes?.owns(stream.actor) == true else { relays?.resume(stream); return }
        var envelope = ScannedEnvelope()
        stream.resumption(as: stream.callID).withUnsafeBytes { bytes in
            guard (try? envelope.scan(bytes)) != nil else { return }
            withUnsafePointer(to: envelope) { envelope in
                withoutCounting { resume(Message(bytes: bytes, envelope: envelope), knownAs: stream.streamID) }
            }
        }
    }

    // MARK: Actors that go to another node

    /// Whether a stream that was to begin does so at another node: its actor has just gone there.
    func goesElsewhere(_ request: StreamRequest, _ call: RunningCall) -> Bool {
        if let message = request.message {
            withdraw(call)
            // It is counted anew.
            request.stake.giveBack()
            // Who goes on with a stream waits for its owner, however long there is none.
            guard request.seen == nil else { message.withMessage { handleAgain($0) }; return true }
            continuing(call) { message.withMessage { handleAgain($0) } }
            return true
        }
        if let upstream {
            withdraw(call)
            let name = request.name.resumed
            upstream.send(name == nil ? .refused : .moved, name ?? request.callID)
            return true
        }
        guard let streamID = request.name.knownAs, let seen = request.seen, let relays else { return false }
        withdraw(call)
        relays.resume(
            RelayedStream(
                request.placed, streamID: streamID, epoch: seen.epoch, sequence: seen.sequence,
                mayShare: mayShareStreams, request.stake))
        return true
    }

    /// Whether a stream that its client has is taken up again in a moment: its actor could not be loaded, as the engine of the cluster was away.
    func goesOnLater(_ request: StreamRequest, _ call: RunningCall, _ error: any Error) -> Bool {
        guard upstream == nil, !isDraining, shard.parts.nodes != nil,
            (error as? TrebuchetError)?.code == .unavailable
        else { return false }
        if let streamID = request.name.knownAs, let seen = request.seen, let relays {
            withdraw(call)
            relays.resumeLater(
                RelayedStream(
                    request.placed, streamID: streamID, epoch: seen.epoch, sequence: seen.sequence,
                    mayShare: mayShareStreams, request.stake))
            return true
        }
        guard request.seen != nil else { return false }
        // Until the time of the call is over.
        shard.reactor.schedule(after: ConnectionRelays.pause) { [weak self] in
            if let self, !call.isAnswered, self.isOpen { self.wait(for: request.name.actor, request, call) }
        }
        return true
    }

    /// Whether a stream is taken up here that the client has under this name, and has not begun.
    func isTakingUp(_ streamID: [UInt8]) -> Bool {
        beginning[streamID]?.name.knownAs == streamID || running[StreamRequest.key(of: streamID)] != nil
    }

    /// A node owns a slot from now on, and nobody here has heard of it: what comes of streams of its actors from elsewhere is over.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode, isHere: Bool) {
        if !isHere {
            for (streamID, placed) in placed where placed.slot == slot {
                // What other nodes send ends by itself.
                guard let subscription = streams[streamID], subscription.broadcaster.hub.goesOnElsewhere == nil
                else { continue }
                move(subscription, placed)
            }
            for call in running.values where call.stream?.knownAs != nil {
                if let goOn = call.goesElsewhere, call.stream.map({ ClusterSlot(of: $0.actor.text) }) == slot { goOn() }
            }
        }
        relays?.ownerDidChange(of: slot, to: node)
    }

    /// Streams of actors that live here no more go on at their next owner.
    func moveStreams(of actors: Set<ActorName>) {
        for (streamID, placed) in placed where actors.contains(ActorName(placed.actor)) {
            if let subscription = streams[streamID] { move(subscription, placed) }
        }
    }

    /// Whether a stream that its actor has ended goes on elsewhere: the actor went to another node.
    func movesAtEnd(_ subscription: StreamSubscription, _ reason: StreamEndReason) -> Bool {
        guard reason == .actorTerminated, let placed = placed[subscription.streamID], let nodes = shard.parts.nodes
        else { return false }
        guard subscription.broadcaster.hub.goesOnElsewhere ?? !nodes.owns(placed.actor) else { return false }
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
            placed, streamID: streamID, epoch: subscription.broadcaster.hub.epoch, sequence: subscription.sent,
            mayShare: mayShareStreams, stakeOfMoved(filtered: subscription.isFiltered))
        forget(subscription)
        let relays = relays ?? ConnectionRelays(self, nodes)
        self.relays = relays
        relays.resume(stream)
    }
}
