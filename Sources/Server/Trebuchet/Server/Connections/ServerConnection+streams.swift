internal import Bytes
internal import Platform
package import TrebuchetActors
internal import TrebuchetWire

/// The streams of the client: their start, their end, and their move to another server.
extension ServerConnection {
    // MARK: The start

    /// Starts a stream: an invocation of `observe…` that names a streamed state, by an authorized caller.
    func startStream(_ stream: String, of record: ActorRecord?, _ message: borrowing Message) {
        do {
            let name = RequestedStream(actor: ActorName(message.actorName), target: stream, resumed: nil)
            try request(name, callID: Array(message.callID), message).start(at: record, message)
        } catch {
            fail(message, error)
        }
    }

    /// Resumes a stream of a client after a reconnect. The client receives a `streamStart` with the current epoch, and the newest
    /// value unless it has it already.
    ///
    /// The stream gets a name of this connection: its earlier name may belong to another stream here.
    ///
    /// - Parameter knownAs: The client's name for it, where its server resumes it without a request.
    func resume(_ message: borrowing Message, knownAs: [UInt8]? = nil) {
        if !isCounted, isOfUpstream(message) { return withoutCounting { resume(message) } }
        guard hasName(message) else { return }
        do {
            let (record, type): (ActorRecord?, ActorType)
            switch location(of: message) {
            case .ready(let found): (record, type) = (found, found.type)
            case .inactive(let inactive): (record, type) = (nil, inactive)
            case .elsewhere(let type): return forward(type, message)
            case .unknown:
                if isGuarded(message.target), let refusal = refusal(of: message.target, message.actorName) {
                    throw refusal
                }
                throw CallRejection.actorNotFound.error(of: nil, nil, message)
            }
            let target = type.target(message.target)
            if case .stream(let stream) = target, isIntercepted(message, stream, nil, of: type) { return }
            if isGuarded(target.name), let refusal = refusal(of: target.name, message.actorName) { throw refusal }
            guard case .stream(let stream) = target else {
                throw TrebuchetError(
                    .methodNotFound,
                    "actor '\(message.actorName.prefix(bytes: 128))' has no stream '\(target.name.prefix(bytes: 128))'")
            }
            let resumed = ownName(in: message)
            if let resumed { endStream(resumed) }
            let name = RequestedStream(
                actor: ActorName(message.actorName), target: stream, resumed: resumed, knownAs: knownAs)
            let callID = message.envelope.pointee.callID.isAbsent ? resumed : Array(message.callID)
            try request(name, callID: callID ?? [], message).start(at: record, message)
        } catch {
            if let knownAs { failStream(knownAs, error) } else { fail(message, error) }
        }
    }

    /// Creates the request for a stream of an actor of this server, and reserves the stream.
    private func request(
        _ name: RequestedStream, callID: [UInt8], _ message: borrowing Message
    ) throws(TrebuchetError) -> StreamRequest {
        let envelope = message.envelope
        var seen: StreamRequest.ResumePosition?
        if message.kind == .streamResume {
            let epoch = envelope.pointee.epoch
            seen = StreamRequest.ResumePosition(
                epoch: epoch.isAbsent ? "" : message.text(epoch), sequence: envelope.pointee.lastSequence ?? 0)
        }
        let filter = try filter(in: message)
        let isFiltered = filter?.acceptsEverything == false
        let wasAdmitted = name.knownAs != nil || seen != nil && isOfUpstream(message)
        let mayMove = upstream == nil && name.knownAs == nil && isClustered(name.actor)
        return StreamRequest(
            name, streamID: name.resumed ?? nextStreamID(), callID: callID, filter: filter, seen: seen,
            reservation: wasAdmitted
                ? reserveMovedStream(filtered: isFiltered) : try reserveStream(filtered: isFiltered),
            mayShare: isShareable(message), message: mayMove ? OwnedMessage(message) : nil, on: self)
    }

    /// Returns the client's name of the stream that it resumes, if it omits the `callID`.
    func ownName(in message: borrowing Message) -> [UInt8]? {
        let envelope = message.envelope
        return envelope.pointee.callID.isAbsent ? Array(message.bytes(envelope.pointee.streamID)) : nil
    }

    /// Returns whether the client's server may serve the requested stream.
    private func isShareable(_ message: borrowing Message) -> Bool {
        guard let upstream, ownName(in: message) == nil else { return false }
        return upstream.mayShare(message.callID) && message.envelope.pointee.filter.isAbsent
    }

    /// Returns the requested filter; nil for the whole stream with patches.
    func filter(in message: borrowing Message) throws(TrebuchetError) -> StreamFilter? {
        let envelope = message.envelope
        do throws(EnvelopeError) {
            guard !envelope.pointee.filter.isAbsent else { return nil }
            let filter = try StreamFilter(message.bytes(envelope.pointee.filter))
            if filter.acceptsEverything { streams.hasWholeValues = true }
            return filter
        } catch {
            throw TrebuchetError(.invalidArguments, error.message)
        }
    }

    /// Returns a name that no resumed stream of the client uses.
    package func nextStreamID() -> [UInt8] { streams.nextName(prefix: upstream?.streamPrefix ?? "") }

    func reportStreamStart(
        of streamID: [UInt8], _ callID: [UInt8], _ actor: String, _ target: String, epoch: String, sequence: UInt64?
    ) {
        link.send { buffer in
            callID.withUnsafeBytes {
                EnvelopeWriter.streamStart(
                    streamID: streamID, callID: $0, actorID: actor, target: target, epoch: epoch, sequence: sequence,
                    into: &buffer)
            }
        }
    }

    /// Reports that a stream does not start, or does not continue.
    func refuse(_ name: RequestedStream, _ callID: [UInt8], _ error: any Error) {
        let streamID = name.resumed ?? name.knownAs
        // The client did nothing to end it: it continues over the next connection, which reports an error if there is one.
        if isDraining, let streamID, name.knownAs != nil { return reportDrainedStream(streamID) }
        shard.observer.didReject(name.actor.text, name.target, error, by: peer)
        if let streamID { failStream(streamID, error) } else { fail(callID, error) }
    }

    package func failStream(_ streamID: [UInt8], _ error: any Error) {
        guard isOpen else { return }
        let failure = failure(error, of: "the stream")
        link.send {
            EnvelopeWriter.streamError(
                streamID: streamID, message: failure.message, code: failure.code,
                retryAfterMilliseconds: failure.retryAfterMilliseconds, into: &$0)
        }
    }

    // MARK: The quota

    /// Reserves a stream. Throws when a limit is reached.
    func reserveStream(filtered: Bool) throws(TrebuchetError) -> StreamReservation {
        let quotas = shard.context.quotas
        if let resource = streamUsage.exceeded(filtered: filtered, limits) {
            throw quotas.refusal(resource, of: name.number)
        }
        do throws(QuotaExceeded) {
            try streamUsage.reserve(filtered: filtered, scopes, in: quotas)
        } catch {
            throw quotas.refusal(error)
        }
        return StreamReservation(self, isFiltered: filtered)
    }

    /// Reserves a stream that continues because its actor has moved. No limit applies: it was admitted before.
    package func reserveMovedStream(filtered: Bool) -> StreamReservation {
        streamUsage.reserveMoved(filtered: filtered, scopes, in: shard.context.quotas)
        return StreamReservation(self, isFiltered: filtered)
    }

    func releaseStream(isFiltered: Bool) { streamUsage.release(filtered: isFiltered, in: shard.context.quotas) }

    // MARK: The end

    /// Ends the streams of a client that is asked to leave, which resumes them over its next connection. This includes streams that
    /// are being resumed at another owner: their ends precede any response.
    func endStreamsForReconnect() {
        for subscription in Array(streams.values) { endStream(subscription, reason: .serverDraining, error: nil) }
        for request in Array(streams.starting.values) where request.name.knownAs != nil {
            request.reservation.withdraw(nil)
            streams.removeRequest(request)
            reportDrainedStream(request.streamID)
        }
        for call in Array(running.values) {
            guard let streamID = call.stream?.knownAs else { continue }
            withdraw(call)
            reportDrainedStream(streamID)
        }
        for streamID in forwarder?.endStreamsForReconnect() ?? [] { reportDrainedStream(streamID) }
        sendReadyResponses()
    }

    /// Ends a stream that a draining client resumes: the client resumes it over its next connection. No actor is asked.
    func resumeElsewhere(_ message: borrowing Message) {
        if let upstream {
            let name = ownName(in: message)
            return if let name { upstream.move(name) } else { upstream.refuse(Array(message.callID)) }
        }
        guard hasName(message) else { return }
        if let name = ownName(in: message) {
            endStream(name)
            return reportDrainedStream(name)
        }
        let (streamID, envelope) = (nextStreamID(), message.envelope)
        let (callID, actor, target) = (Array(message.callID), message.actorName, message.target)
        let epoch = envelope.pointee.epoch.isAbsent ? "" : message.text(envelope.pointee.epoch)
        reportStreamStart(
            of: streamID, callID, actor, target, epoch: epoch, sequence: envelope.pointee.lastSequence)
        reportDrainedStream(streamID)
    }

    /// Sends a stream request of a draining connection elsewhere: to the client's server, which asks the next owner, or to the client's next
    /// connection.
    ///
    /// - Returns: false for a new stream of the client, which needs a beginning first.
    func beginsElsewhere(_ name: RequestedStream, _ callID: [UInt8]) -> Bool {
        if let upstream {
            if let streamID = name.resumed { upstream.move(streamID) } else { upstream.refuse(callID) }
            return true
        }
        guard let streamID = name.resumed ?? name.knownAs else { return false }
        reportDrainedStream(streamID)
        return true
    }

    package func reportDrainedStream(_ streamID: [UInt8]) {
        if isOpen { reportStreamEnd(of: streamID, reason: .serverDraining, error: nil) }
    }

    /// Ends the streams of an actor that checks its observers: this connection is no longer authorized. May be called on any thread.
    func endStreams(of actor: ActorName, _ error: TrebuchetError) {
        shard.reactor.run {
            for (streamID, name) in self.streams.observerChecked where name == actor {
                if let subscription = self.streams[streamID] {
                    self.endStream(subscription, reason: .error, error: error)
                }
            }
            // Streams that are starting were authorized earlier.
            for request in self.streams.starting.values where request.name.actor == actor {
                request.reservation.withdraw(error)
            }
        }
    }

    /// Handles the client's unsubscription from a stream.
    func unsubscribe(_ message: borrowing Message) {
        let streamID = Array(message.bytes(message.envelope.pointee.streamID))
        if forwarder?.unsubscribe(streamID) == true {
            return reportStreamEnd(of: streamID, reason: .clientUnsubscribed, error: nil)
        }
        if let subscription = streams[streamID] {
            return endStream(subscription, reason: .clientUnsubscribed, error: nil)
        }
        // The stream may not have started yet.
        if let request = streams.starting[streamID], request.name.resumed != nil || request.name.knownAs == streamID {
            request.reservation.withdraw(nil)
            streams.removeRequest(request)
        } else if let call = running[streamID], call.stream?.resumed != nil {
            call.cancel()
            withdraw(call)
        } else if let call = running[StreamRequest.key(of: streamID)] {
            withdraw(call)
        } else {
            return
        }
        reportStreamEnd(of: streamID, reason: .clientUnsubscribed, error: nil)
        sendReadyResponses()
    }

    /// Ends the stream with this name, wherever it is: the client resumes a stream under the name.
    func endStream(_ streamID: [UInt8]) {
        _ = forwarder?.unsubscribe(streamID)
        if let old = streams[streamID] { removeStream(old) }
        if let call = running[StreamRequest.key(of: streamID)] { withdraw(call) }
        guard let request = streams.starting[streamID], request.name.knownAs == streamID else { return }
        request.reservation.withdraw(nil)
        streams.removeRequest(request)
    }

    func removeStream(_ subscription: StreamSubscription) {
        shard.counts.count(.streamsEnded)
        streams.remove(subscription.streamID)
        subscription.broadcaster.remove(subscription)
        releaseStream(isFiltered: subscription.isFiltered)
    }

    /// Removes a stream and notifies the client.
    package func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        // The end of an earlier stream may have closed the connection.
        guard streams[subscription.streamID] === subscription else { return }
        shard.observer.didEnd(subscription, of: name, reason.rawValue)
        if !streams.movable.isEmpty, isOpen, error == nil, movesAtEnd(subscription, reason) { return }
        removeStream(subscription)
        guard isOpen else { return }
        reportStreamEnd(of: subscription.streamID, reason: reason, error: error)
    }

    func reportStreamEnd(of streamID: [UInt8], reason: StreamEndReason, error: TrebuchetError?) {
        if let error { shard.counts.count(.error(error.code.wire.rawValue)) }
        link.send {
            if let error {
                EnvelopeWriter.streamError(
                    streamID: streamID, message: error.message, code: error.code.wire,
                    retryAfterMilliseconds: error.retryAfter?.milliseconds, into: &$0)
            } else {
                EnvelopeWriter.streamEnd(streamID: streamID, reason: reason, into: &$0)
            }
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

    // MARK: Actors that go to another server

    /// Returns whether a stream with this name is being resumed here and has not started.
    package func isResuming(_ streamID: [UInt8]) -> Bool {
        streams.starting[streamID]?.name.knownAs == streamID || running[StreamRequest.key(of: streamID)] != nil
    }

    /// Indicates whether streams of the connection may move to another server.
    package var hasMovableStreams: Bool { !streams.movable.isEmpty }

    /// Moves the streams of a partition's actors to its new owner, before the previous owner reports the change.
    package func moveStreams(inPartition partition: Int) {
        for (streamID, stream) in streams.movable where stream.partition == partition {
            // Streams from other servers end without this.
            guard let subscription = streams[streamID], subscription.broadcaster.producer.requiresNewRequest == nil
            else { continue }
            move(subscription, stream)
        }
        for call in running.values where call.stream?.knownAs != nil {
            if let moveStream = call.moveStream, let name = call.stream?.actor.text,
                shard.partition(of: name) == partition
            {
                moveStream()
            }
        }
    }

    /// Moves the streams of actors that have left this server to their next owner.
    func moveStreams(of actors: Set<ActorName>) {
        for (streamID, stream) in streams.movable where actors.contains(ActorName(stream.actor)) {
            if let subscription = streams[streamID] { move(subscription, stream) }
        }
    }

    /// Returns whether a stream that its actor has ended continues at another server, to which the actor moved.
    func movesAtEnd(_ subscription: StreamSubscription, _ reason: StreamEndReason) -> Bool {
        guard reason == .actorTerminated, let stream = streams.movable[subscription.streamID],
            let router = shard.context.router
        else { return false }
        guard subscription.broadcaster.producer.requiresNewRequest ?? !router.owns(stream.actor) else { return false }
        move(subscription, stream)
        return true
    }

    private func move(_ subscription: StreamSubscription, _ stream: MovableStream) {
        let streamID = subscription.streamID
        if let upstream {
            removeStream(subscription)
            return upstream.move(streamID)
        }
        guard let forwarder = requireForwarder() else { return }
        let moving = MovingStream(
            stream: stream, streamID: streamID, mayShare: true,
            reservation: reserveMovedStream(filtered: subscription.isFiltered))
        let position = StreamRequest.ResumePosition(
            epoch: subscription.broadcaster.producer.epoch, sequence: subscription.sent)
        removeStream(subscription)
        forwarder.resume(moving, at: position, pauses: false)
    }

    // MARK: Responses that follow streams

    /// Answers a call that ran on another reactor, or on none. Its changes may be in streams from there that are starting, whose
    /// first values take one message more than the response.
    ///
    /// - Parameter home: nil for an actor without a reactor.
    func finish(_ call: InFlightCall, _ outcome: CallOutcome, behindStreamsOf home: SystemShard?) {
        if let actor = call.activatedActor ?? call.sharedExecution?.activatedActor, isOpen,
            hasUnrequestedStreams(.of(actor))
        {
            return whenStreamsAreCurrent(for: call, .of(actor), outcome.bytesOfResult) { self.finish(call, outcome) }
        }
        guard streams.hasPendingFirstValues, isOpen, home !== shard.states, awaitsStreams(of: home) else {
            return finish(call, outcome)
        }
        whenStreamsAreCurrent(for: call, .none, outcome.bytesOfResult) { self.finish(call, outcome) }
    }

    /// Returns whether the client waits for streams of the shard's actors.
    func awaitsStreams(of home: SystemShard?) -> Bool {
        requestMissingVersions()
        return streams.awaitsFirstValues(from: home)
    }

    /// Returns whether a shared stream is starting, or a stream of the actor is being resumed here.
    func awaitsSharedStreams(of actor: ActorName) -> Bool {
        if forwarder?.awaits(actor) == true { return true }
        guard streams.hasPendingFirstValues else { return false }
        requestMissingVersions()
        return streams.awaitsFirstValues
    }

    /// Sends the available versions; if a stream needs others, they are requested.
    private func requestMissingVersions() {
        if shard.states.isMarked { catchUpStreams() }
    }

    /// Returns whether a response waits for streams that have not been requested from their actors yet.
    private func hasUnrequestedStreams(_ awaited: BarrierStreams) -> Bool {
        switch awaited {
        case .none: false
        case .of(let actor): running.values.contains { $0.streamedActor == actor } || forwarder?.awaits(actor) == true
        case .moved(let actor): forwarder?.awaits(actor) == true
        }
    }

    /// Calls `done` on this reactor as soon as the connection's streams and the awaited ones are up to date. It waits for at most half
    /// of the call's remaining time: a known response must not be lost because a stream does not start.
    ///
    /// - Parameter bytes: The size of the response.
    func whenStreamsAreCurrent(
        for call: InFlightCall, _ awaited: BarrierStreams, _ bytes: Int, _ done: @escaping () -> Void
    ) {
        if isOpen { requestMissingVersions() }
        let barrier = ResponseBarrier(awaited, bytes, done)
        guard isOpen, hasUnrequestedStreams(awaited) || !streams.areCurrent, delayResponse(call, barrier) else {
            return done()
        }
        let now = shard.reactor.now
        let half = Duration.nanoseconds(Int64(clamping: call.deadline > now ? (call.deadline - now) / 2 : 0))
        shard.responseBarriers.append(barrier, of: name, for: min(awaited.maximumWait, half))
    }

    /// Calls `done` on this reactor as soon as streams that have started are up to date.
    func whenStartedStreamsAreCurrent(_ done: @escaping () -> Void) {
        // The turn that started them has not ended.
        shard.responseBarriers.append(ResponseBarrier(.none, 0, done), of: name, for: BarrierStreams.none.maximumWait)
        shard.reactor.execute { self.sendReadyResponses() }
    }

    /// Keeps a response that waits for streams. Its bytes count as buffered memory of the client.
    ///
    /// - Returns: false when there is no room for it or the call has ended; the response is then sent without waiting.
    private func delayResponse(_ call: InFlightCall, _ barrier: ResponseBarrier) -> Bool {
        guard calls[call.callID] === call, (try? account.reserve(barrier.bytes)) != nil else { return false }
        if call.awaitStreams(barrier) { return true }
        account.release(barrier.bytes)
        return false
    }

    /// Sends waiting responses after a stream has started, failed to start, or received its missing versions.
    @inline(__always)
    func sendReadyResponses() {
        if !shard.responseBarriers.isEmpty { checkBarriers() }
    }

    private func checkBarriers() {
        guard shard.responseBarriers.hasResponses(of: name) else { return }
        // It may end the connection and thereby its waiting responses.
        if isOpen, streams.areCurrent { requestMissingVersions() }
        guard !isOpen || streams.areCurrent else { return }
        // Collected once for many responses.
        var streamedActors: Set<ActorName>?
        let ready = shard.responseBarriers.removeReady(of: name) { barrier in
            guard isOpen else { return true }
            guard case .of(let actor) = barrier.awaited else { return !hasUnrequestedStreams(barrier.awaited) }
            let actors = streamedActors ?? Set(running.values.lazy.compactMap(\.streamedActor))
            streamedActors = actors
            return !actors.contains(actor) && forwarder?.awaits(actor) != true
        }
        for barrier in ready { barrier.sendResponse() }
    }
}

/// Forwarding: messages about actors of other servers go to their owners.
extension ServerConnection {
    /// The pause before another request to an owner that could not be reached or could not load an actor.
    package static var retryPause: Duration { .milliseconds(500) }

    /// Forwards a message about an actor of another server.
    func forward(_ type: ActorType, _ message: borrowing Message) {
        continuedCall?.intercepted?.leave()
        let target = type.target(message.target)
        if let upstream {
            // The client's server assumed that the actor lives here.
            if let name = ownName(in: message) { return upstream.move(name) }
            let callID = Array(message.callID)
            return message.kind == .repeat ? upstream.repeatElsewhere(callID) : upstream.refuse(callID)
        }
        if message.kind != .streamResume {
            if refusesIdempotencyKey(message) || forwarder?.postpones(message) == true { return }
        }
        guard mayPass(target.name, message), let forwarder = requireForwarder() else { return }
        if let excess = forwarder.excess { return fail(message, excess) }
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
        case .unknown: isRepeatable = false
        }
        if stream == nil { shard.counts.count(.callsForwarded) }
        guard let stream else { return forwarder.forward(message, isRepeatable: isRepeatable) }
        do {
            // The owner counts it too, but only for this server.
            let filter = try filter(in: message)
            let reservation = try reserveStream(filtered: filter?.acceptsEverything == false)
            forwarder.forward(message, starting: stream, filter, reservation)
        } catch {
            fail(message, error)
        }
    }

    /// Returns whether a call has been refused because it names the session of an idempotency key and is not a call over HTTP.
    func refusesIdempotencyKey(_ message: borrowing Message) -> Bool {
        guard message.hasIdempotencyKey, upstream == nil, !(link is HTTPCall) else { return false }
        fail(message, TrebuchetError(.invalidArguments, "'session' is not known to this server"))
        return true
    }

    /// Returns the connection's forwarder, which is created at the first use; nil at a server without a router.
    func requireForwarder() -> (any ConnectionForwarder)? {
        if let forwarder { return forwarder }
        forwarder = shard.router?.makeForwarder(for: self)
        return forwarder
    }

    /// Returns whether a call queues behind earlier calls of its actor that are at another server or return from there, or behind
    /// streams that are being resumed. It is executed after them.
    func isQueuedBehindOthers(_ message: borrowing Message) -> Bool {
        guard let forwarder else { return false }
        if forwarder.postpones(message) { return true }
        guard forwarder.hasEarlierMessages(behind: message),
            let type = shard.directory.clusteredType(of: ActorName(message.actorName))
        else { return false }
        forward(type, message)
        return true
    }

    /// Returns whether a message is a call, which belongs to the principal with which it arrived. Streams follow the present one.
    package func isBound(_ message: borrowing Message) -> Bool {
        guard message.kind != .cancel else { return false }
        let type = shard.directory.type(of: ActorName(message.actorName))
        if case .stream? = type?.target(message.target) { return false }
        return true
    }

    /// Returns whether another server resumes with it a stream that its client started earlier.
    func isOfUpstream(_ message: borrowing Message) -> Bool {
        guard let upstream, ownName(in: message) == nil else { return false }
        return upstream.resumesItself(message.callID)
    }

    /// Returns the client's number of a call whose response is recorded; nil if the callID is not a number.
    func number(of message: borrowing Message) -> UInt64? {
        guard let upstream else { return UInt64(message.text(message.envelope.pointee.callID)) }
        return upstream.callNumber(message.callID)
    }

    // MARK: Messages of owners

    /// Sends the client a message in the owner's encoding.
    package func passOn(_ message: UnsafeRawBufferPointer) {
        guard isOpen else { return }
        link.send { $0.append(message) }
    }

    /// Sends the client the start of a stream at its owner, with the client's callID. It is never deferred: the versions of the
    /// stream, which follow, mean nothing to a client without it.
    package func passOnStart(_ message: borrowing Message, as callID: [UInt8]) {
        let renamed = message.renamed(callID)
        guard renamed.count <= largestMessage else { return fail(callID, tooLarge("the start", renamed.count)) }
        renamed.withUnsafeBytes { passOn($0) }
    }

    /// Sends the client a response of the owner, with the client's callID.
    private func passOn(_ message: borrowing Message, as callID: [UInt8]) {
        let isHeld = shard.states.isMarked && !catchUpStreams()
        let renamed = message.renamed(callID)
        guard renamed.count <= largestMessage else { return fail(callID, tooLarge("the result", renamed.count)) }
        guard !isHeld else { return deferResponse { $0.append(renamed) } }
        renamed.withUnsafeBytes { passOn($0) }
    }

    /// Sends the client the response of another server. It follows the updates of this server's streams from there, and of the
    /// streams of the actor that are being resumed.
    package func answer(_ call: InFlightCall, from actor: ActorName, _ message: borrowing Message) {
        guard awaitsSharedStreams(of: actor) else {
            withdraw(call)
            return passOn(message, as: call.callID)
        }
        let owned = OwnedMessage(message)
        whenStreamsAreCurrent(for: call, .moved(actor), message.bytes.count) {
            guard self.running[call.callID] === call else { return }
            self.withdraw(call)
            owned.withMessage { self.passOn($0, as: call.callID) }
        }
    }

    /// Resumes a stream whose actor lives here now.
    ///
    /// - Parameters:
    ///   - bytes: The message that resumes it.
    ///   - streamID: The client's name of the stream.
    package func resumeHere(_ bytes: [UInt8], _ streamID: [UInt8]) {
        var envelope = ScannedEnvelope()
        bytes.withUnsafeBytes { bytes in
            guard (try? envelope.scan(bytes)) != nil else { return }
            withUnsafePointer(to: envelope) { envelope in
                withoutCounting { resume(Message(bytes: bytes, envelope: envelope), knownAs: streamID) }
            }
        }
    }

    // MARK: For the forwarder

    /// The name of the connection in messages.
    package var session: String { shard.idempotencyCache.names.text(name) }

    /// Returns the running call with this callID.
    package func runningCall(_ callID: [UInt8]) -> InFlightCall? { running[callID] }

    /// The running calls that a forwarder has sent to other servers, or is about to send.
    package var forwardedCalls: [InFlightCall] { running.values.filter { $0.forwarded != nil } }

    /// Calls `body` on the connection's reactor once for each other reactor, when that reactor has executed all calls that the
    /// connection has sent to it so far.
    ///
    /// - Returns: The number of these reactors.
    package func afterCrossReactorCalls(_ body: @escaping @Sendable () -> Void) -> Int {
        let reactor = shard.reactor
        let queues = crossReactorCalls?.queues ?? []
        for queue in queues { queue.enqueue { reactor.execute(body) } }
        return queues.count
    }

    // MARK: Clients of other servers

    /// Opens the connection of a client whose server forwards it. It replaces the earlier connection of the same name.
    ///
    /// - Parameters:
    ///   - link: The link to that server.
    ///   - largestMessage: The maximum size in bytes of a message to the client.
    package static func open(
        over link: any MessageLink & UpstreamServer, at shard: ServerShard, caller: Caller?, largestMessage: Int
    ) -> ServerConnection {
        let name = link.alias.name
        // No further messages arrive over the previous link.
        shard.connections[name.number]?.linkDidClose()
        let connection = ServerConnection(
            link, name: name, shard: shard, caller: caller, largestMessage: largestMessage,
            upstream: link)
        connection.recordsResponses = shard.idempotencyCache.reopen(name)
        // Other servers take over the actors of a draining server: no new calls and streams start here.
        if shard.isDraining { connection.dismiss() }
        return connection
    }
}
