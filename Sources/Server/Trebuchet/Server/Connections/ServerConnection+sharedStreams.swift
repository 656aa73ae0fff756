internal import Bytes
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Shared streams: this node receives a stream of another node once for all of its clients. Each client's node channel asks the
/// owner for permission to observe; the versions then come from this node.
extension ServerConnection {
    // MARK: At the owner

    /// Returns whether the client's node may serve the requested stream.
    func isShareable(_ message: borrowing Message) -> Bool {
        upstream != nil && ownName(in: message) == nil
            && ForwardedCallID(message.callID)?.mayShare == true && message.envelope.pointee.filter.isAbsent
    }

    /// Returns whether nodes share an actor's streams. They do not if the actor checks its observers, or if its changes do not
    /// happen in the order of a reactor's turns.
    func isShared(_ record: ActorRecord) -> Bool { record.isClustered && record.home != nil && !record.type.isGated }

    // MARK: At the client's node

    /// Starts a shared stream that the owner permits the client to observe.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the stream at its owner.
    ///   - position: The client's position, if it does not start with the current value.
    func share(_ stream: ForwardedStream, at node: ClusterNode, epoch: String, position: UInt64?) {
        guard let nodes = shard.context.nodes, isOpen else { return }
        // The reservation of the client's request continues: no limit ends the stream when its actor moves.
        let reservation = stream.reservation as? StreamReservation ?? reserveMovedStream(filtered: false)
        stream.reservation = nil
        let (streamID, isFirst) = (nextStreamID(), stream.streamID.isEmpty)
        // A stream that the client had before was ended when the connection began to drain.
        if isDraining, !isFirst { return }
        stream.startStream(as: streamID, epoch: epoch, position: position)
        var request = StreamRequest(
            name: RequestedStream(
                actor: ActorName(stream.actor), target: stream.target, resumed: nil, knownAs: streamID),
            streamID: streamID, callID: stream.callID, filter: nil,
            seen: StreamRequest.ResumePosition(epoch: epoch, sequence: stream.sequence), reservation: reservation)
        request.isFirst = isFirst
        reportStreamStart(of: streamID, request, epoch: epoch, sequence: position)
        if isDraining { return reportDrainedStream(streamID) }
        startingStreams[streamID] = request
        hasPendingFirstValues = true
        let connection = self
        let key = SharedStreamSubscriptions.Key(actor: stream.actor, target: stream.target)
        nodes.shared.join(key, at: node, behind: (epoch, stream.sequence)) { [request] shared, answer in
            // Ordered behind earlier notices to the reactor, for example about the owner of the slot.
            connection.shard.reactor.execute {
                connection.startSharedStream(request, with: answer)
                if case .stream = answer { shared.didJoin() }
            }
        }
    }

    private func startSharedStream(_ request: StreamRequest, with answer: SharedStream.SubscribeOutcome) {
        didBegin(request)
        defer { shard.sendReadyResponses(of: self) }
        guard isOpen, !isDraining, let seen = request.seen else { return }
        if let revocation = revocation(of: request.name.actor.text) {
            return failStream(request.streamID, revocation)
        }
        if request.reservation.isWithdrawn {
            if let error = request.reservation.refusal { failStream(request.streamID, error) }
            return
        }
        switch answer {
        case .elsewhere: repeatRequest(request, mayShare: true)
        case .failed(let error): failStream(request.streamID, error)
        case .stream(let mirror): observe(mirror, request, seen)
        }
    }

    private func repeatRequest(_ request: StreamRequest, mayShare: Bool) {
        guard let seen = request.seen else { return }
        forwarder?.resume(
            ForwardedStream(
                request.clusteredStream, streamID: request.streamID, epoch: seen.epoch, sequence: seen.sequence,
                mayShare: mayShare, request.reservation))
    }

    private func observe(_ mirror: RemoteStreamReplica, _ request: StreamRequest, _ seen: StreamRequest.ResumePosition)
    {
        let streamID = request.streamID
        let isResumed = mirror.canResume(from: seen.sequence, in: seen.epoch)
        guard isResumed || mirror.kind != .events else {
            let text = "events were missed: their actor was activated again"
            return failStream(streamID, TrebuchetError(.overflow, text))
        }
        let start = isResumed ? seen.sequence : 0
        // The owner may have the missing versions: request them for this client alone.
        guard mirror.serves(behind: start) else { return repeatRequest(request, mayShare: false) }
        if !mirror.epoch.utf8.elementsEqual(seen.epoch.utf8) {
            reportStreamStart(of: streamID, request, epoch: mirror.epoch, sequence: isResumed ? start : nil)
        }
        clusteredStreams[streamID] = request.clusteredStream
        if isUnderRules { authorizedStreams[streamID] = request.name }
        let label = ServerEvent.Stream(
            actor: request.name.actor.text, type: typeName(of: request.name.actor), target: request.name.target)
        didBegin(label, request.isFirst ? .initial : isResumed ? .resumed : .resynchronized)
        shard.states.subscribe(to: mirror, as: label) { broadcaster in
            let subscription = StreamSubscription(
                streamID: streamID, broadcaster: broadcaster, subscriber: self,
                isFiltered: request.reservation.isFiltered)
            request.reservation.transfer()
            subscription.markSent(upTo: start)
            streams[streamID] = subscription
            return subscription
        } attach: { broadcaster in
            mirror.attachBroadcaster(broadcaster)
        }
        // An ended stream may have dropped versions before this subscription, and the response that follows them is in this
        // reactor's queue.
        if mirror.hasEnded, let subscription = streams[streamID] {
            endStream(subscription, reason: .actorTerminated, error: nil)
        }
    }

    /// Sends the client the response of another node. It follows the updates of this node's streams from that node, and of the
    /// streams of the actor that are being resumed.
    func answer(_ call: InFlightCall, _ relayed: ForwardedCall, _ message: borrowing Message) {
        let actor = ActorName(relayed.actor)
        guard awaitsSharedStreams(of: actor) else {
            withdraw(call)
            return passOn(message, as: call.callID)
        }
        let owned = OwnedMessage(message)
        shard.whenStreamsAreCurrent(for: call, of: self, movedWith: actor, message.bytes.count) {
            guard self.running[call.callID] === call else { return }
            self.withdraw(call)
            owned.withMessage { self.passOn($0, as: call.callID) }
        }
    }

    /// Ends all shared streams: the client may observe no streams of other nodes any more.
    func endSharedStreams(_ error: TrebuchetError) {
        for subscription in Array(streams.values) where subscription.broadcaster.producer.requiresNewRequest != nil {
            endStream(subscription, reason: .error, error: error)
        }
        for request in startingStreams.values where request.name.knownAs == request.streamID {
            request.reservation.withdraw(error)
        }
    }
}
