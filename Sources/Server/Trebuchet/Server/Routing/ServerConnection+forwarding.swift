internal import Bytes
package import TrebuchetActors
internal import TrebuchetWire

/// Forwarding: messages about actors of other servers go to their owners.
extension ServerConnection {
    /// The pause before another request to an owner that could not be reached or could not load an actor.
    package static var retryPause: Duration { .milliseconds(500) }

    /// Forwards a message about an actor of another server.
    func forward(_ type: ActorType, _ message: borrowing Message) {
        endInterception()
        let target = type.target(message.target)
        if let upstream {
            // The client's server assumed that the actor lives here.
            if let name = ownName(in: message) { return upstream.move(name) }
            let callID = Array(message.callID)
            return message.kind == .repeat ? upstream.repeatElsewhere(callID) : upstream.refuse(callID)
        }
        if message.kind != .streamResume, forwarder?.postpones(message) == true { return }
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

    /// Returns the connection's forwarder, which is created at the first use; nil at a server without a router.
    private func requireForwarder() -> (any ConnectionForwarder)? {
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

    /// Handles a message that was on its way to another server and belongs to this one. It has been counted.
    package func handleReturned(_ message: borrowing Message) {
        withoutCounting { handleAgain(message) }
    }

    /// Handles a resumption that was on its way to another server, so interceptors have not run.
    package func handleReturnedResumption(_ message: borrowing Message) {
        isReturnedResumption = true
        defer { isReturnedResumption = false }
        handleReturned(message)
    }

    /// Handles a withdrawn call again in `body`, with its deadline and the decision of the access rules. Otherwise a call that
    /// returns repeatedly would never end.
    ///
    /// A call whose principal has left the connection meanwhile fails instead.
    package func continuing(_ call: InFlightCall, _ body: () -> Void) {
        // The interceptors that receive a refusal of the withdrawn call decide its response.
        defer { holdIfRefused(call) }
        if let refusal = authorization.refusalOfReplacedPrincipal(call) {
            let error = call.mayHaveRun ? refusal.ofSentCall : refusal
            if call.intercepted?.refuse(error) == true { return }
            return fail(call.callID, error)
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

    /// Handles a message that has waited.
    package func handleAgain(_ message: borrowing Message) {
        switch message.kind {
        case .invocation: invoke(message)
        case .repeat: idempotentCalls.receiveRepeat(message)
        case .cancel: cancel(message)
        default: resume(message)
        }
    }

    /// Handles messages in `body` that the client did not send, or that were counted before.
    func withoutCounting(_ body: () -> Void) {
        let before = isCounted
        isCounted = true
        defer { isCounted = before }
        body()
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

    // MARK: What a forwarder needs to know

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
        for queue in crossReactorQueues.all { queue.enqueue { reactor.execute(body) } }
        return crossReactorQueues.all.count
    }

    // MARK: Actors that go to another server

    /// Returns whether a stream starts at another server instead: its actor has just moved there.
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
        forwarder.resume(moving(request, streamID, mayShare: true), at: seen, pauses: false)
        return true
    }

    /// Returns whether a client's stream is resumed after a pause: the shared store was unreachable, so its actor could not be
    /// loaded.
    func resumesLater(_ request: StreamRequest, _ call: InFlightCall, _ error: any Error) -> Bool {
        guard upstream == nil, !isDraining, shard.router != nil, (error as? TrebuchetError)?.code == .unavailable
        else { return false }
        if let streamID = request.name.knownAs, let seen = request.seen, let forwarder {
            withdraw(call)
            forwarder.resume(moving(request, streamID, mayShare: true), at: seen, pauses: true)
            return true
        }
        guard request.seen != nil else { return false }
        // The call's deadline ends the attempts.
        shard.reactor.schedule(after: Self.retryPause) { [weak self] in
            if let self, !call.isAnswered, self.isOpen { self.wait(for: request.name.actor, request, call) }
        }
        return true
    }

    /// Returns a requested stream as it continues at another server.
    func moving(_ request: StreamRequest, _ streamID: [UInt8], mayShare: Bool) -> MovingStream {
        MovingStream(
            stream: request.movable(in: shard.partition(of: request.name.actor.text)), streamID: streamID,
            mayShare: mayShare, reservation: request.reservation)
    }

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
            removeCall(subscription)
            return upstream.move(streamID)
        }
        guard let forwarder = requireForwarder() else { return }
        let moving = MovingStream(
            stream: stream, streamID: streamID, mayShare: true,
            reservation: reserveMovedStream(filtered: subscription.isFiltered))
        let position = StreamRequest.ResumePosition(
            epoch: subscription.broadcaster.producer.epoch, sequence: subscription.sent)
        removeCall(subscription)
        forwarder.resume(moving, at: position, pauses: false)
    }
}
