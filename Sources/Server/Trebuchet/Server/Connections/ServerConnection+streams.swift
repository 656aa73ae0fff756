internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

extension ServerConnection {
    // MARK: Beginning

    /// Starts a stream: an invocation of `observe…` that names a streamed state, by an authorized caller.
    func startStream(_ stream: String, of record: ActorRecord?, _ message: borrowing Message) {
        do {
            let name = RequestedStream(actor: ActorName(message.actorName), target: stream, resumed: nil)
            let filter = try filter(in: message)
            let request = StreamRequest(
                name: name, streamID: nextStreamID(), callID: Array(message.callID), filter: filter, seen: nil,
                reservation: try reserveStream(filtered: filter?.acceptsEverything == false),
                mayShare: isShareable(message))
            startStream(request, of: record, message)
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
        let envelope = message.envelope
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
                throw notExposed(message)
            }
            let target = type.target(message.target)
            if case .stream(let stream) = target, isIntercepted(message, stream, nil, of: type) { return }
            if isGuarded(target.name), let refusal = refusal(of: target.name, message.actorName) { throw refusal }
            guard case .stream(let stream) = target else {
                throw TrebuchetError(
                    .methodNotFound,
                    "actor '\(message.actorName.prefix(bytes: 128))' has no stream '\(target.name.prefix(bytes: 128))'")
            }
            let epoch = envelope.pointee.epoch
            let seen = StreamRequest.ResumePosition(
                epoch: epoch.isAbsent ? "" : message.text(epoch), sequence: envelope.pointee.lastSequence ?? 0)
            let resumed = ownName(in: message)
            if let resumed { endStream(resumed) }
            let name = RequestedStream(
                actor: ActorName(message.actorName), target: stream, resumed: resumed, knownAs: knownAs)
            let callID = envelope.pointee.callID.isAbsent ? resumed : Array(message.callID)
            let filter = try filter(in: message)
            let isFiltered = filter?.acceptsEverything == false
            let continues = knownAs != nil || isOfUpstream(message)
            let request = StreamRequest(
                name: name, streamID: resumed ?? nextStreamID(), callID: callID ?? [], filter: filter, seen: seen,
                reservation: continues
                    ? reserveMovedStream(filtered: isFiltered) : try reserveStream(filtered: isFiltered),
                mayShare: isShareable(message))
            startStream(request, of: record, message)
        } catch {
            if let knownAs { failStream(knownAs, error) } else { fail(message, error) }
        }
    }

    /// Returns the client's name of the stream that it resumes, if it omits the `callID`.
    func ownName(in message: borrowing Message) -> [UInt8]? {
        let envelope = message.envelope
        return envelope.pointee.callID.isAbsent ? Array(message.bytes(envelope.pointee.streamID)) : nil
    }

    /// Reports that a requested call or stream does not start, under the stream's name where the message has one.
    package func fail(_ message: borrowing Message, _ error: any Error) {
        let error = refusal(error, of: message)
        shard.observer.didReject(message, error, by: peer)
        if passesRefusal(error) { return }
        if message.kind == .streamResume, let name = ownName(in: message) { return failStream(name, error) }
        fail(message.callID, error)
    }

    /// Returns the error for the refusal of a message: a repeat was sent before.
    func refusal(_ error: any Error, of message: borrowing Message) -> any Error {
        message.kind == .repeat ? (error as? TrebuchetError)?.ofSentCall ?? error : error
    }

    private func refuse(_ request: StreamRequest, _ error: any Error) { refuse(request.name, request.callID, error) }

    /// Reports that a stream does not start, or does not continue.
    func refuse(_ name: RequestedStream, _ callID: [UInt8], _ error: any Error) {
        guard let streamID = name.resumed ?? name.knownAs else {
            shard.observer.didReject(name.actor.text, name.target, error, by: peer)
            return fail(callID, error)
        }
        // The client did nothing to end it: it continues over the next connection, which reports an error if there is one.
        if isDraining, name.knownAs != nil { return reportDrainedStream(streamID) }
        shard.observer.didReject(name.actor.text, name.target, error, by: peer)
        failStream(streamID, error)
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

    /// Activates the actor if necessary, and starts the stream.
    private func startStream(_ request: StreamRequest, of record: ActorRecord?, _ message: borrowing Message) {
        var request = request
        if shard.context.router != nil, upstream == nil, request.name.knownAs == nil,
            shard.directory.clusteredType(of: request.name.actor) != nil
        {
            request.message = OwnedMessage(message)
        }
        if let record {
            shard.continued = nil
            return startStream(request, of: record)
        }
        guard let call = registerCall(message, request.key, isPermitted: true) else { return }
        if waitsForOwner(request) { call.timer?.cancel() }
        wait(for: request.name.actor, request, call)
    }

    /// Returns whether the request is a resumption that waits for the owner of its actor, without a time limit.
    private func waitsForOwner(_ request: StreamRequest) -> Bool {
        request.seen != nil && isClustered(request.name.actor)
    }

    /// Waits for the actor as a running call: it counts, has a deadline and can be cancelled.
    func wait(for name: ActorName, _ request: StreamRequest, _ call: InFlightCall) {
        call.stream = request.name
        if request.name.knownAs != nil {
            call.moveStream = { [weak self, weak call] in
                if let self, let call { _ = self.forwardMovedStream(request, call) }
            }
        }
        let waiter = shard.awaitActor(name, for: scopes) { [weak self] outcome in
            guard call.endActivationWait(), let self else { return }
            defer { self.sendReadyResponses() }
            switch outcome {
            case .failure(let error):
                if ActorMoved.isIt(error), self.forwardMovedStream(request, call) { return }
                if self.resumesLater(request, call, error) { return }
                self.finish(call, .failure(error))
            case .success(let record):
                self.withdraw(call)
                self.startStream(request, of: record)
            }
        }
        call.awaitActivation(waiter)
    }

    private func startStream(_ request: StreamRequest, of record: ActorRecord) {
        if isDraining, beginsElsewhere(request.name, request.callID) { return }
        let connection = self
        if let first = streams.addRequest(request, isOfOtherReactor: record.home !== shard.states) {
            abandonRequest(first)
        }
        guard record.actorInstance.enter() else { return restartStream(request, of: record) }
        record.beginStream(request.name.target, for: callerConnection) { found in
            let source = try? found.get()
            let outcome = Result { try found.get().map { try connection.view(of: $0, through: request.filter) } }
            let position = source?.position(retainedFor: connection.shard.limits.streams.resumeRetention)
            connection.shard.reactor.run {
                connection.subscribe(request, to: outcome, at: position, record)
                record.actorInstance.removeUser()
            }
        }
    }

    /// Starts again after the actor was deactivated meanwhile: it is activated once more.
    private func restartStream(_ request: StreamRequest, of record: ActorRecord) {
        streams.removeRequest(request)
        guard isOpen else { return }
        if request.reservation.isWithdrawn {
            if let error = request.reservation.refusal { refuse(request, error) }
            return
        }
        guard running[request.key] == nil, load.count < limits.calls else {
            return refuse(request, TrebuchetError(.unavailable, "the actor was just deactivated; retry"))
        }
        let call = InFlightCall(callID: request.key, after: shard.limits.calls.timeout, on: shard.reactor, byteCount: 0)
        calls.list(call)
        _ = calls.count(call)
        shard.counts.count(.callsBegun)
        if !waitsForOwner(request) {
            call.timer = shard.reactor.schedule(after: shard.limits.calls.timeout) { [weak self, weak call] in
                guard let self, let call else { return }
                self.finish(call, .failure(TrebuchetError(.timeout, "the actor was not activated in time")))
            }
        }
        wait(for: ActorName(record.name), request, call)
    }

    /// Returns the source as the filter shows it. Isolated to the state's actor.
    private func view(of source: StreamProducer, through filter: StreamFilter?) throws -> StreamProducer {
        guard let filter else { return source }
        return try source.filtered(
            filter, clock: source.home?.reactor ?? shard.reactor, terms: FilterQuota(shard.limits, scopes))
    }

    private func subscribe(
        _ request: StreamRequest, to outcome: Result<StreamProducer?, any Error>, at position: StreamPosition?,
        _ record: ActorRecord
    ) {
        streams.removeRequest(request)
        defer { sendReadyResponses() }
        let source: StreamProducer
        switch outcome {
        case .success(let found?): source = found
        case .success(nil): return refuse(request, record.notFoundError)
        case .failure(let error): return refuse(request, error)
        }
        // A filter that was created for this stream alone ends with it, whatever the reason.
        var isUsed = false
        defer { if !isUsed { source.endIfUnused() } }
        guard isOpen else { return }
        if let revocation = authorization.revocation(of: record.name) { return refuse(request, revocation) }
        if request.reservation.isWithdrawn {
            if let error = request.reservation.refusal { refuse(request, error) }
            return
        }
        if isDraining, beginsElsewhere(request.name, request.callID) { return }
        let (stream, streamID) = (request.name.target, request.streamID)
        let seen = request.seen.flatMap { source.canResume(from: $0.sequence, in: $0.epoch) ? $0 : nil }
        // A client that continues from another incarnation must learn of it.
        let isOfEarlierLife = seen.map { !$0.epoch.utf8.elementsEqual(source.epoch.utf8) } ?? false
        if let old = streams[streamID] { removeCall(old) }
        let label = ServerEvent.Stream(actor: request.name.actor.text, type: record.type.name, target: stream)
        if request.seen != nil, seen == nil, position != nil {
            // The stream does not start: a client that only learned of the new incarnation would continue without the missed events.
            shard.observer.didStart(label, .eventsMissed, by: peer)
            let text = "events were missed: their actor was activated again"
            return refuse(request, TrebuchetError(.overflow, text))
        }
        let permission = request.mayShare && isShared(record) ? upstream?.permission : nil
        reportStreamStart(
            of: permission ?? streamID, request, epoch: source.epoch,
            sequence: isOfEarlierLife ? seen?.sequence : position?.number)
        if permission != nil { return }
        // The client resumes it from this position over its next connection.
        if isDraining { return reportDrainedStream(streamID) }
        let start: ServerEvent.StreamStart = request.seen == nil ? .initial : seen == nil ? .resynchronized : .resumed
        shard.observer.didStart(label, start, by: peer)
        isUsed = true
        defer {
            if let upstream, request.seen != nil {
                whenStartedStreamsAreCurrent { upstream.reportCatchUp(of: streamID) }
            }
        }
        if record.type.isGated { streams.observerChecked[streamID] = request.name.actor }
        if record.isClustered { streams.movable[streamID] = request.movable(in: record.partition) }
        if authorization.isUnderRules { streams.authorized[streamID] = request.name }
        shard.states.subscribe(to: source, as: label) { broadcaster in
            let subscription = StreamSubscription(
                streamID: streamID, broadcaster: broadcaster, subscriber: self,
                isFiltered: request.reservation.isFiltered)
            request.reservation.transfer()
            if let seen {
                subscription.markSent(upTo: seen.sequence)
            } else if let position {
                subscription.markSent(upTo: position.number)
            }
            streams[streamID] = subscription
            return subscription
        } attach: { broadcaster in
            record.executeStreamingTarget(stream) { source in
                // The position keeps the versions until then.
                withExtendedLifetime(position) {
                    if source == nil { broadcaster.send(.ended) } else { broadcaster.producer.attach(broadcaster) }
                }
            }
        }
    }

    func reportStreamStart(of streamID: [UInt8], _ request: StreamRequest, epoch: String, sequence: UInt64?) {
        link.send { buffer in
            request.callID.withUnsafeBytes {
                EnvelopeWriter.streamStart(
                    streamID: streamID, callID: $0, actorID: request.name.actor.text, target: request.name.target,
                    epoch: epoch, sequence: sequence, into: &buffer)
            }
        }
    }

    /// Returns a name that no resumed stream of the client uses.
    package func nextStreamID() -> [UInt8] {
        streams.nextName(prefix: upstream?.streamPrefix ?? "")
    }

    /// Ends a request whose stream name the client has used again. If the client chose both names, it knows; otherwise it waits for
    /// a response.
    private func abandonRequest(_ request: StreamRequest) {
        let text = "the client resumed another stream under the name of this stream"
        request.reservation.withdraw(request.name.resumed == nil ? TrebuchetError(.cancelled, text) : nil)
    }

    // MARK: Frames for several subscribers

    package func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        link.inOneWrite(body, observing: observer)
    }

    package var framing: UInt8 { largestMessage >= SharedFrameCache.maximumBytes ? link.framing : 0 }

    package func sendSharedFrames(_ frames: UnsafeRawBufferPointer) -> Bool {
        guard link.isWritable else { return false }
        link.sendSharedFrames(frames)
        return true
    }
}
