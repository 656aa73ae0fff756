internal import Bytes
package import TrebuchetActors
internal import TrebuchetWire

/// Shared streams: this server receives a stream of another server once for all of its clients. For each client it asks the owner
/// for permission to observe; the versions then come from this server.
extension ServerConnection {
    // MARK: At the owner

    /// Returns whether the client's server may serve the requested stream.
    func isShareable(_ message: borrowing Message) -> Bool {
        guard let upstream, ownName(in: message) == nil else { return false }
        return upstream.mayShare(message.callID) && message.envelope.pointee.filter.isAbsent
    }

    /// Returns whether servers share an actor's streams. They do not if the actor checks its observers, or if its changes do not
    /// happen in the order of a reactor's turns.
    func isShared(_ record: ActorRecord) -> Bool { record.isClustered && record.home != nil && !record.type.isGated }

    // MARK: At the client's server

    /// Reports the start of a shared stream that the owner permits the client to observe.
    ///
    /// - Parameter position: The client's position, if it does not start with the current value.
    /// - Returns: false if the client leaves; the stream must not be requested then.
    package func awaitSharedStream(_ request: StreamRequest, at position: UInt64?) -> Bool {
        reportStreamStart(of: request.streamID, request, epoch: request.seen?.epoch ?? "", sequence: position)
        if isDraining {
            reportDrainedStream(request.streamID)
            return false
        }
        streams.addRequest(request, isOfOtherReactor: true)
        return true
    }

    /// Starts an awaited shared stream.
    package func startSharedStream(_ request: StreamRequest, with answer: SharedStreamOutcome) {
        streams.removeRequest(request)
        defer { sendReadyResponses() }
        guard isOpen, !isDraining, let seen = request.seen else { return }
        if let revocation = authorization.revocation(of: request.name.actor.text) {
            return failStream(request.streamID, revocation)
        }
        if request.reservation.isWithdrawn {
            if let error = request.reservation.refusal { failStream(request.streamID, error) }
            return
        }
        switch answer {
        case .elsewhere: requestAgain(request, seen, mayShare: true)
        case .failed(let error): failStream(request.streamID, error)
        case .stream(let mirror): observe(mirror, request, seen)
        }
    }

    private func requestAgain(_ request: StreamRequest, _ seen: StreamRequest.ResumePosition, mayShare: Bool) {
        forwarder?.resume(moving(request, request.streamID, mayShare: mayShare), at: seen, pauses: false)
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
        guard mirror.serves(behind: start) else { return requestAgain(request, seen, mayShare: false) }
        if !mirror.epoch.utf8.elementsEqual(seen.epoch.utf8) {
            reportStreamStart(of: streamID, request, epoch: mirror.epoch, sequence: isResumed ? start : nil)
        }
        streams.movable[streamID] = request.movable(in: shard.partition(of: request.name.actor.text))
        if authorization.isUnderRules { streams.authorized[streamID] = request.name }
        let label = ServerEvent.Stream(
            actor: request.name.actor.text, type: shard.directory.type(of: request.name.actor)?.name ?? "other",
            target: request.name.target)
        shard.observer.didStart(
            label, request.isFirst ? .initial : isResumed ? .resumed : .resynchronized, by: peer)
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

    /// Ends all shared streams: the client may observe no streams of other servers any more.
    package func endSharedStreams(_ error: TrebuchetError) {
        for subscription in Array(streams.values) where subscription.broadcaster.producer.requiresNewRequest != nil {
            endStream(subscription, reason: .error, error: error)
        }
        for request in streams.starting.values where request.name.knownAs == request.streamID {
            request.reservation.withdraw(error)
        }
    }
}
