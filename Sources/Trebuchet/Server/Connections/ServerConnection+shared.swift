internal import Bytes
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Streams of actors of other nodes that this node takes once for all of its clients. Each client asks their owner whether it may observe,
/// over its own line; what it gets then comes from this node.
extension ServerConnection {
    // MARK: At the owner

    /// Whether what a message asks for may come to the client from its own node.
    func isShareable(_ message: borrowing Message) -> Bool {
        upstream != nil && dates == .milliseconds && ownName(in: message) == nil
            && LineCallID(message.callID)?.mayShare == true && message.envelope.pointee.filter.isAbsent
    }

    /// Whether nodes take an actor's streams for all of their clients: not of one that looks at who observes it, nor of one whose changes
    /// do not come to pass in the order of a reactor's turns.
    func isShared(_ record: ActorRecord) -> Bool { record.isPlaced && record.home != nil && !record.type.isGated }

    // MARK: At the client's node

    /// Older clients get dates in another form.
    var mayShareStreams: Bool { dates == .milliseconds }

    /// The owner says that the client may observe.
    ///
    /// - Parameters:
    ///   - epoch: the life in which the stream is at its owner.
    ///   - position: what the client has of it, where that does not begin with what there is.
    func share(_ stream: RelayedStream, at node: ClusterNode, epoch: String, position: UInt64?) {
        guard let nodes = shard.parts.nodes, isOpen else { return }
        // It goes on counting as it has from when its client asked for it: no limit ends it when its actor moves.
        let stake = stream.stake as? StreamStake ?? stakeOfMoved(filtered: false)
        stream.stake = nil
        let (streamID, isFirst) = (nextStreamID(), stream.streamID.isEmpty)
        // A stream that the client had before was ended when the connection began to drain.
        if isDraining, !isFirst { return }
        stream.begin(as: streamID, epoch: epoch, position: position)
        var request = StreamRequest(
            name: AskedStream(
                actor: ActorName(stream.actor), target: stream.target, resumed: nil, knownAs: streamID),
            streamID: streamID, callID: stream.callID, filter: nil,
            seen: StreamRequest.Seen(epoch: epoch, sequence: stream.sequence), stake: stake)
        request.isFirst = isFirst
        tellStart(of: streamID, request, epoch: epoch, sequence: position)
        if isDraining { return tellDeparture(of: streamID) }
        beginning[streamID] = request
        mayAwaitStreams = true
        let connection = self
        let key = SharedStreams.Key(actor: stream.actor, target: stream.target)
        nodes.shared.join(key, at: node, behind: (epoch, stream.sequence)) { [request] shared, answer in
            // Behind what the reactor has been told before: who owns the slot no more, say.
            connection.shard.reactor.execute {
                connection.begin(request, with: answer)
                if case .stream = answer { shared.didJoin() }
            }
        }
    }

    private func begin(_ request: StreamRequest, with answer: SharedStream.Answer) {
        didBegin(request)
        defer { shard.streamsMayShow(self) }
        guard isOpen, !isDraining, let seen = request.seen else { return }
        if let revocation = revocation(of: request.name.actor.text) {
            return failStream(request.streamID, revocation)
        }
        if request.stake.isWithdrawn {
            if let error = request.stake.refusal { failStream(request.streamID, error) }
            return
        }
        switch answer {
        case .elsewhere: askAgain(request, mayShare: true)
        case .failed(let error): failStream(request.streamID, error)
        case .stream(let mirror): observe(mirror, request, seen)
        }
    }

    private func askAgain(_ request: StreamRequest, mayShare: Bool) {
        guard let seen = request.seen else { return }
        relays?.resume(
            RelayedStream(
                request.placed, streamID: request.streamID, epoch: seen.epoch, sequence: seen.sequence,
                mayShare: mayShare, request.stake))
    }

    private func observe(_ mirror: MirroredSource, _ request: StreamRequest, _ seen: StreamRequest.Seen) {
        let streamID = request.streamID
        let goesOn = mirror.goesOn(from: seen.sequence, in: seen.epoch)
        guard goesOn || mirror.kind != .events else {
            let text = "events were missed: the actor they come from was made anew"
            return failStream(streamID, TrebuchetError(.overflow, text))
        }
        let start = goesOn ? seen.sequence : 0
        // What is missing here its owner may have: for this client alone.
        guard mirror.serves(behind: start) else { return askAgain(request, mayShare: false) }
        if !mirror.epoch.utf8.elementsEqual(seen.epoch.utf8) {
            tellStart(of: streamID, request, epoch: mirror.epoch, sequence: goesOn ? start : nil)
        }
        placed[streamID] = request.placed
        if isUnderRules { permitted[streamID] = request.name }
        let label = ServerEvent.Stream(
            actor: request.name.actor.text, type: typeName(of: request.name.actor), target: request.name.target)
        didBegin(label, request.isFirst ? .first : goesOn ? .inPlace : .anew)
        shard.states.subscribe(to: mirror, as: label) { broadcaster in
            let subscription = StreamSubscription(
                streamID: streamID, broadcaster: broadcaster, subscriber: self, isFiltered: request.stake.isFiltered)
            request.stake.handOver()
            subscription.begin(behind: start)
            streams[streamID] = subscription
            return subscription
        } attach: { broadcaster in
            mirror.begin(broadcaster)
        }
        // Then it may have left something out before this observed it, and the answer behind that is in this reactor's queue.
        if mirror.hasEnded, let subscription = streams[streamID] {
            endStream(subscription, reason: .actorTerminated, error: nil)
        }
    }

    /// Gives the client the answer of a call that another node has made, behind what the streams show by then that come from this one, and
    /// those of its actor that are being taken up.
    func answer(_ call: RunningCall, _ relayed: RelayedCall, _ message: borrowing Message) {
        let actor = ActorName(relayed.actor)
        guard awaitsSharedStreams(of: actor) else {
            withdraw(call)
            return passOn(message, as: call.callID)
        }
        let kept = KeptMessage(message)
        shard.whenStreamsShow(for: call, of: self, movedWith: actor, message.bytes.count) {
            guard self.running[call.callID] === call else { return }
            self.withdraw(call)
            kept.withMessage { self.passOn($0, as: call.callID) }
        }
    }

    /// The client may observe nothing of other nodes any more.
    func endSharedStreams(_ error: TrebuchetError) {
        for subscription in Array(streams.values) where subscription.broadcaster.hub.goesOnElsewhere != nil {
            endStream(subscription, reason: .error, error: error)
        }
        for request in beginning.values where request.name.knownAs == request.streamID {
            request.stake.withdraw(error)
        }
    }
}
