internal import Bytes
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Forwarding: messages about actors of other nodes go to their owners.
extension ServerConnection {
    /// Forwards a message about an actor of another node.
    func forward(_ type: ActorType, _ message: borrowing Message) {
        let target = type.target(message.target)
        if let upstream {
            // The client's node assumed that the actor lives here.
            if let name = ownName(in: message) { return upstream.send(.moved, name) }
            return upstream.send(message.kind == .repeat ? .repeatElsewhere : .refused, Array(message.callID))
        }
        if let forwarder, message.kind != .streamResume, postpones(message, forwarder) { return }
        guard mayPass(target.name, message), let nodes = shard.context.nodes else { return }
        let relays = forwarder ?? RemoteCallForwarder(self, nodes)
        self.forwarder = relays
        if let excess = relays.excess { return fail(message, excess) }
        let isRepeatable: Bool
        var stream: RequestedStream?
        switch target {
        case .method(let method):
            isRepeatable =
                !message.envelope.pointee.session.isAbsent && method._withUnsafeGuaranteedRef { $0.isIdempotent }
        case .stream(let name):
            isRepeatable = true
            let resumed = message.kind == .streamResume ? ownName(in: message) : nil
            if let resumed { endStream(resumed) }
            stream = RequestedStream(actor: ActorName(message.actorName), target: name, resumed: resumed)
        case .program, .unknown: isRepeatable = false
        }
        if stream == nil { shard.counts.count(.callsForwarded) }
        guard let stream else { return relays.forward(message, isRepeatable: isRepeatable) }
        do {
            // The owner counts it too, but only for this node.
            let filter = try filter(in: message)
            let reservation = try reserveStream(filtered: !message.envelope.pointee.filter.isAbsent)
            relays.forward(message, starting: stream, filter, reservation)
        } catch {
            fail(message, error)
        }
    }

    /// Returns whether a call queues behind earlier calls of its actor that are at another node or return from there, or behind
    /// streams that are being resumed. It is executed after them.
    func isQueuedBehindOthers(_ message: borrowing Message) -> Bool {
        guard let forwarder else { return false }
        if postpones(message, forwarder) { return true }
        guard hasCallsElsewhere, forwarder.hasEarlier(of: ClusterSlot(of: message.actorName)),
            let type = shard.directory.clusteredType(of: ActorName(message.actorName))
        else { return false }
        forward(type, message)
        return true
    }

    /// Returns whether a call or cancellation waits until the reactor knows of the latest owners. It must not precede information
    /// for its streams, nor an earlier call.
    func postpones(_ message: borrowing Message, _ relays: RemoteCallForwarder) -> Bool {
        guard !isCounted, !relays.isMakingPostponed, shard.hasPendingOwnerChanges || relays.postponed > 0 else {
            return false
        }
        let owned = OwnedMessage(message)
        let (isBound, principal) = (isBound(message), callerConnection?.principal?.name)
        relays.postponed += 1
        shard.reactor.execute {
            guard let relays = self.forwarder else { return }
            relays.postponed -= 1
            guard !isBound || self.callerConnection?.principal?.name == principal else {
                return owned.withMessage { self.fail($0, Self.replacedPrincipal) }
            }
            relays.isMakingPostponed = true
            defer { relays.isMakingPostponed = false }
            owned.withMessage { self.handle($0) }
        }
        return true
    }

    /// Returns whether a message is a call, which belongs to the principal with which it arrived. Streams follow the present one.
    private func isBound(_ message: borrowing Message) -> Bool {
        guard message.kind != .cancel else { return false }
        let type = shard.directory.type(of: ActorName(message.actorName))
        if case .stream? = type?.target(message.target) { return false }
        return true
    }

    /// Handles a message that was on its way to another node and belongs to this one. It has been counted.
    func handleReturned(_ message: borrowing Message) {
        withoutCounting { handle(message) }
    }

    /// Handles a withdrawn call again in `body`, with its deadline and the decision of the access rules. Otherwise a call that
    /// returns repeatedly would never end.
    ///
    /// A call whose principal has left the connection meanwhile fails instead.
    func continuing(_ call: InFlightCall, _ body: () -> Void) {
        if let refusal = refusalOfReplacedPrincipal(call) {
            let mayHaveRun = call.run != nil || call.repeated != nil || call.relayed != nil
            return fail(call.callID, mayHaveRun ? refusal.ofSentCall : refusal)
        }
        let before = shard.continued
        shard.continued = (call, self)
        defer { shard.continued = before }
        body()
    }

    /// Returns the call that the current message belonged to before, once.
    func removeContinuedCall() -> InFlightCall? {
        guard let continued = shard.continued, continued.connection === self else { return nil }
        shard.continued = nil
        return continued.call
    }

    /// Handles a call again that may have started.
    func repeatCall(_ message: borrowing Message) {
        guard message.kind == .invocation else { return handleReturned(message) }
        message.withRepeat { handleReturned($0) }
    }

    private func handle(_ message: borrowing Message) {
        switch message.kind {
        case .invocation: invoke(message)
        case .repeat: receiveRepeat(message)
        case .cancel: cancel(message)
        default: resume(message)
        }
    }

    /// Handles messages in `body` that the client did not send, or that were counted before.
    func withoutCounting(_ body: () -> Void) {
        isCounted = true
        defer { isCounted = false }
        body()
    }

    /// Returns whether a node resumes with it a stream that its client started earlier.
    func isOfNode(_ message: borrowing Message) -> Bool {
        upstream != nil && ownName(in: message) == nil && ForwardedCallID(message.callID)?.isOfNode == true
    }

    /// Returns the client's number of a call whose response is recorded; nil if the callID is not a number.
    func number(of message: borrowing Message) -> UInt64? {
        upstream == nil
            ? UInt64(message.text(message.envelope.pointee.callID)) : ForwardedCallID(message.callID)?.number
    }

    /// Sends the client a message in the owner's encoding.
    func passOn(_ message: UnsafeRawBufferPointer) {
        guard isOpen else { return }
        link.send { $0.append(message) }
    }

    /// Sends the client the start of a stream at its owner, with the client's callID. It is never deferred: the versions of the
    /// stream, which follow, mean nothing to a client without it.
    func passOnStart(_ message: borrowing Message, as callID: [UInt8]) {
        let renamed = message.renamed(callID)
        guard renamed.count <= largestMessage else { return fail(callID, tooLarge("the start", renamed.count)) }
        renamed.withUnsafeBytes { passOn($0) }
    }

    /// Sends the client a response of the owner, with the client's callID.
    func passOn(_ message: borrowing Message, as callID: [UInt8]) {
        let isHeld = shard.states.isMarked && !catchUpStreams()
        let renamed = message.renamed(callID)
        guard renamed.count <= largestMessage else { return fail(callID, tooLarge("the result", renamed.count)) }
        guard !isHeld else { return deferResponse { $0.append(renamed) } }
        renamed.withUnsafeBytes { passOn($0) }
    }

    /// Resumes a stream of an actor that lives here now.
    func resumeStream(_ stream: ForwardedStream) {
        guard shard.context.nodes?.owns(stream.actor) == true else { forwarder?.resume(stream); return }
        var envelope = ScannedEnvelope()
        stream.resumption(as: stream.callID).withUnsafeBytes { bytes in
            guard (try? envelope.scan(bytes)) != nil else { return }
            withUnsafePointer(to: envelope) { envelope in
                withoutCounting { resume(Message(bytes: bytes, envelope: envelope), knownAs: stream.streamID) }
            }
        }
    }

    // MARK: Actors that go to another node

    /// Returns whether a stream starts at another node instead: its actor has just moved there.
    func forwardMovedStream(_ request: StreamRequest, _ call: InFlightCall) -> Bool {
        if let message = request.message {
            withdraw(call)
            // The next attempt takes a new reservation.
            request.reservation.release()
            // A resumption waits for an owner without a time limit.
            guard request.seen == nil else { message.withMessage { handleReturned($0) }; return true }
            continuing(call) { message.withMessage { handleReturned($0) } }
            return true
        }
        if upstream != nil {
            withdraw(call)
            return beginsElsewhere(request.name, request.callID)
        }
        guard let streamID = request.name.knownAs, let seen = request.seen, let forwarder else { return false }
        withdraw(call)
        forwarder.resume(
            ForwardedStream(
                request.clusteredStream, streamID: streamID, epoch: seen.epoch, sequence: seen.sequence,
                mayShare: mayShareStreams, request.reservation))
        return true
    }

    /// Returns whether a client's stream is resumed after a pause: the coordination store was unreachable, so its actor could not be
    /// loaded.
    func resumesLater(_ request: StreamRequest, _ call: InFlightCall, _ error: any Error) -> Bool {
        guard upstream == nil, !isDraining, shard.context.nodes != nil,
            (error as? TrebuchetError)?.code == .unavailable
        else { return false }
        if let streamID = request.name.knownAs, let seen = request.seen, let forwarder {
            withdraw(call)
            forwarder.scheduleResume(
                ForwardedStream(
                    request.clusteredStream, streamID: streamID, epoch: seen.epoch, sequence: seen.sequence,
                    mayShare: mayShareStreams, request.reservation))
            return true
        }
        guard request.seen != nil else { return false }
        // The call's deadline ends the attempts.
        shard.reactor.schedule(after: RemoteCallForwarder.pause) { [weak self] in
            if let self, !call.isAnswered, self.isOpen { self.wait(for: request.name.actor, request, call) }
        }
        return true
    }

    /// Returns whether a stream with this name is being resumed here and has not started.
    func isResuming(_ streamID: [UInt8]) -> Bool {
        startingStreams[streamID]?.name.knownAs == streamID || running[StreamRequest.key(of: streamID)] != nil
    }

    /// Moves the streams of a slot's actors to its new owner, before the previous owner reports the change.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode, isHere: Bool) {
        if !isHere {
            for (streamID, clustered) in clusteredStreams where clustered.slot == slot {
                // Streams from other nodes end without this.
                guard let subscription = streams[streamID], subscription.broadcaster.producer.requiresNewRequest == nil
                else { continue }
                move(subscription, clustered)
            }
            for call in running.values where call.stream?.knownAs != nil {
                if let moveStream = call.moveStream, call.stream.map({ ClusterSlot(of: $0.actor.text) }) == slot {
                    moveStream()
                }
            }
        }
        forwarder?.ownerDidChange(of: slot, to: node)
    }

    /// Moves the streams of actors that have left this node to their next owner.
    func moveStreams(of actors: Set<ActorName>) {
        for (streamID, clustered) in clusteredStreams where actors.contains(ActorName(clustered.actor)) {
            if let subscription = streams[streamID] { move(subscription, clustered) }
        }
    }

    /// Returns whether a stream that its actor has ended continues at another node, to which the actor moved.
    func movesAtEnd(_ subscription: StreamSubscription, _ reason: StreamEndReason) -> Bool {
        guard reason == .actorTerminated, let clustered = clusteredStreams[subscription.streamID],
            let nodes = shard.context.nodes
        else { return false }
        guard subscription.broadcaster.producer.requiresNewRequest ?? !nodes.owns(clustered.actor) else { return false }
        move(subscription, clustered)
        return true
    }

    private func move(_ subscription: StreamSubscription, _ clustered: ClusteredStream) {
        let streamID = subscription.streamID
        if let upstream {
            removeCall(subscription)
            return upstream.send(.moved, streamID)
        }
        guard let nodes = shard.context.nodes else { return }
        let stream = ForwardedStream(
            clustered, streamID: streamID, epoch: subscription.broadcaster.producer.epoch, sequence: subscription.sent,
            mayShare: mayShareStreams, reserveMovedStream(filtered: subscription.isFiltered))
        removeCall(subscription)
        let relays = forwarder ?? RemoteCallForwarder(self, nodes)
        self.forwarder = relays
        relays.resume(stream)
    }
}
