internal import Bytes
internal import Networking
package import TrebuchetActors
internal import TrebuchetWire

/// Running calls: from their registration to their response, their deadline or the end of the connection.
extension ServerConnection {
    /// Registers a call that is not answered at once; returns nil when it was refused.
    ///
    /// - Parameters:
    ///   - isInTransit: True if the call runs in place on another reactor.
    ///   - isPermitted: True if the rules, where there are any, have just permitted it.
    func registerCall(
        _ message: borrowing Message, isInTransit: Bool = false, isPermitted: Bool
    ) -> InFlightCall? {
        registerCall(message, Array(message.callID), isInTransit: isInTransit, isPermitted: isPermitted)
    }

    /// - Parameter callID: The identifier for cancellation.
    package func registerCall(
        _ message: borrowing Message, _ callID: [UInt8], isInTransit: Bool = false, isPermitted: Bool
    ) -> InFlightCall? {
        // Taken before user code may run here.
        let earlier = removeContinuedCall()
        let permission = (isPermitted ? authorization.consumePermission() : nil) ?? earlier?.permission
        recordQueuedCalls()
        guard calls[callID] == nil else {
            let text = "callID '\(String(decoding: callID, as: UTF8.self))' is in use by an in-flight call"
            shard.observer.didReject(message, TrebuchetError(.init(.malformedEnvelope), text), by: peer)
            sendError(.malformedEnvelope, text)
            return nil
        }
        let bytes = message.bytes.count + (isInTransit ? 0 : CallLoad.overhead)
        // A call that continues was admitted before.
        if !isInTransit, isCounted || earlier != nil {
            _ = account.adjustUsage(by: bytes)
        } else if !isInTransit, let refusal = refusal(ofBytes: bytes) {
            fail(message, refusal)
            return nil
        }
        let limit = timeLimit(of: message)
        let call = InFlightCall(
            callID: callID, after: limit, on: shard.reactor, byteCount: bytes, isInTransit: isInTransit,
            continuing: earlier)
        call.permission = permission
        call.caller = authorization.caller
        call.inherit(earlier, message)
        time(call, within: limit)
        calls.list(call)
        if calls.count(call) { link.pauseReading() }
        shard.counts.count(.callsBegun)
        return call
    }

    /// Ends a call at its deadline.
    func time(_ call: InFlightCall, within limit: Duration) {
        // The timer retains both until it is cancelled at the end of the call: a weak reference would make every later reference
        // count operation on them slower.
        call.timer = shard.reactor.schedule(at: call.deadline) {
            call.cancel()
            self.finish(call, .failure(TrebuchetError(.timeout, "the call took longer than \(limit)")))
        }
    }

    /// Returns the maximum duration of a call.
    func timeLimit(of message: borrowing Message) -> Duration {
        let limits = shard.limits
        guard let requested = message.envelope.pointee.timeoutMilliseconds else {
            return min(limits.calls.timeout, limits.calls.maximumTimeout)
        }
        return min(.milliseconds(requested), limits.calls.maximumTimeout)
    }

    /// Indicates whether no running call remains to be answered.
    var hasNoCalls: Bool { callsUnderWay == 0 && deferredResponses == nil }
    var callsUnderWay: Int { load.count + load.inTransit }
    var load: CallLoad { calls.load }
    /// The listed calls by callID.
    var running: [[UInt8]: InFlightCall] { calls.listed }

    /// Returns the reason to refuse a further call; nil when its bytes have been reserved.
    func refusal(ofBytes bytes: Int) -> TrebuchetError? {
        let limits = limits
        if load.count >= limits.calls {
            countRejection(limit: "calls.perConnection")
            return TrebuchetError(
                .rateLimited,
                "\(limits.calls) calls of this connection are in flight, which is the limit "
                    + "(ServerLimits.calls.perConnection)")
        }
        if load.answered >= limits.calls {
            countRejection(limit: "calls.perConnection")
            return TrebuchetError(
                .rateLimited,
                "\(load.answered) calls of this connection that timed out or were cancelled still run or have unsent responses "
                    + "(ServerLimits.calls.perConnection)")
        }
        if load.bytes + bytes > limits.callBytes {
            countRejection(limit: "calls.bytesPerConnection")
            return TrebuchetError(
                .rateLimited,
                "in-flight calls of this connection have \(load.bytes) bytes; the limit is "
                    + "\(limits.callBytes) (ServerLimits.calls.bytesPerConnection)")
        }
        do throws(MemoryLimitExceeded) {
            try account.reserve(bytes)
            return nil
        } catch {
            countRejection(limit: "memory.total")
            return TrebuchetError(.rateLimited, error.reason)
        }
    }

    /// The memory account of its calls.
    var account: MemoryAccount {
        if let memory = calls.memory { return memory }
        let created = link.memory ?? MemoryAccount(limit: .max, server: shard.context.memory)
        calls.memory = created
        return created
    }

    /// Ends a call whose connection is closed, and which is not listed any more.
    func abandon(_ call: InFlightCall) {
        if let last = call.end(isAnswered: false) { release(call, after: last) }
    }

    /// Ends the accounting of a call without a waiting caller: releases what `registerCall` reserved. Work that still runs for the call, or
    /// is on its way to another server, keeps its memory and counts until it ends. Otherwise a client could start any number of
    /// methods without waiting.
    ///
    /// - Parameter last: The phase in which the call has ended.
    private func release(_ call: InFlightCall, after last: InFlightCall.Phase) {
        switch last {
        case .forwarded(let request):
            if request.whenSent({ [shard] in shard.reactor.execute { self.didWork(call) } }) { call.continueWork() }
        case .awaitingStreams(let barrier): release(barrier)
        default: break
        }
        shard.counts.count(.callsEnded)
        if calls.release(call) { link.resumeReading() }
    }

    /// Ends the wait of a response for streams.
    func release(_ barrier: ResponseBarrier) {
        barrier.drop()
        calls.memory?.release(barrier.bytes)
    }

    /// Notes that the work for a call has ended.
    func didWork(_ call: InFlightCall) {
        if call.endWork(), calls.releaseWork(of: call) { link.resumeReading() }
    }

    /// Reverts `registerCall`.
    package func withdraw(_ call: InFlightCall) {
        guard let last = call.end(), calls.remove(call) else { return }
        // Event handlers are notified again when the call starts elsewhere.
        call.observedCall?.reportEnd(to: shard.events, .unavailable)
        release(call, after: last)
    }

    /// Answers a call, on whatever thread it ended.
    ///
    /// - Parameter home: The shard on whose reactor it ran, in place or in a task; nil if it ran on no reactor.
    func finish(_ call: InFlightCall, _ outcome: CallOutcome, from home: SystemShard?) {
        // The changes of an actor without a reactor are on their way here, even if it ran on this thread.
        if home != nil, shard.reactor.isCurrent {
            didWork(call)
            return call.activatedActor == nil ? finish(call, outcome) : finish(call, outcome, behindStreamsOf: home)
        }
        guard let queue = call.crossReactorQueue, case .success(let result) = outcome else {
            return shard.deliver(from: home) {
                self.didWork(call)
                self.finish(call, outcome, behindStreamsOf: home)
            }
        }
        queue.addUnreadBytes(result.byteCount)
        shard.deliver(from: home) {
            self.didWork(call)
            self.finish(call, outcome, behindStreamsOf: home)
            self.didReceive(result.byteCount, from: queue)
        }
    }

    package func finish(_ call: InFlightCall, _ outcome: CallOutcome) {
        guard let outcome = self.outcome(of: call, outcome), let last = call.end() else { return }
        if calls.remove(call) { release(call, after: last) }
        guard isOpen else { return shard.observer.didEnd(call, outcome.errorCode) }
        do {
            let result = try outcome.get()
            shard.reply.pointee.reset(keepingAtMost: ServerShard.retainedReplyCapacity)
            try result.write(with: shard.coder, into: &shard.reply.pointee)
            let bytes = shard.reply.pointee.bytes
            call.callID.withUnsafeBytes {
                shard.observer.didEnd(call, code($0, bytes))
                succeed($0, result.isVoid ? nil : bytes, call.observedCall)
            }
        } catch {
            shard.observer.didEnd(call, .init(of: error))
            guard let stream = call.stream else {
                return call.callID.withUnsafeBytes { fail($0, error, call.observedCall) }
            }
            refuse(stream, call.callID, error)
        }
    }

    /// Delivers a recorded response. May be called on any reactor.
    func deliver(_ answer: ServerIdempotencyCache.Memory.Response, to call: InFlightCall) {
        let outcome: CallOutcome = answer.map { _CallResult(encoded: $0) }.mapError { $0 }
        let reactor = shard.reactor
        guard let repeated = call.repeated else {
            return reactor.run { self.finish(call, outcome, behindStreamsOf: call.sharedExecution?.home) }
        }
        // The call's changes may not have reached this reactor, or not have left the actor's reactor: the response follows them.
        let here: @Sendable () -> Void = {
            self.whenStreamsAreCurrent(for: call, .of(repeated.actor), outcome.bytesOfResult) {
                self.finish(call, outcome)
            }
        }
        guard let home = repeated.home, home !== shard.states else { return reactor.execute(here) }
        home.reactor.execute {
            home.whenPublished { reactor.execute(here) }
        }
    }

    /// Handles the cancellation of a call by its client.
    func cancel(_ message: borrowing Message) {
        recordQueuedCalls()
        guard let call = calls[Array(message.callID)] else {
            if let call = crossReactorQueues.withdraw(message.callID) {
                return end(call, TrebuchetError.cancelledByCaller)
            }
            _ = forwarder?.postpones(message)
            return
        }
        call.cancel()
        finish(call, .failure(TrebuchetError.cancelledByCaller))
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

    /// Calls `done` on this reactor as soon as the connection's streams and the awaited ones are up to date, or after a limit: at
    /// most half of the call's remaining time, since a stream that does not start must not cost a known response.
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

extension CallOutcome {
    /// The number of encoded bytes of the call's result.
    var bytesOfResult: Int { (try? get())?.byteCount ?? 0 }

    /// The code that event handlers receive; nil for a result.
    fileprivate var errorCode: TrebuchetError.Code? {
        if case .failure(let error) = self { TrebuchetError.Code(of: error) } else { nil }
    }
}

extension TrebuchetError {
    fileprivate static var cancelledByCaller: TrebuchetError {
        TrebuchetError(.cancelled, "the call was cancelled by its caller")
    }
}

/// Calls and streams that still wait when a stopping server closes its connections.
extension ServerConnection {
    private static var notMade: TrebuchetError {
        TrebuchetError(.unavailable, "the server is shutting down and did not execute the call; retry")
    }
    private static var unknown: TrebuchetError {
        TrebuchetError(
            .unknownOutcome, "the server is shutting down during the call, which may have taken effect")
    }

    /// Answers the calls that still wait: with `unknownOutcome`, or with `unavailable` when they have not begun. A call that its
    /// client repeats is not answered: it gets its response from the next owner of its actor, or from the next process.
    func endWaitingCalls() {
        guard isOpen else { return }
        recordQueuedCalls()
        endCrossReactorCalls(Self.unknown)
        for call in calls.all { endWaiting(call) }
        for request in Array(streams.starting.values) {
            // A refusal may have ended the connection.
            guard isOpen else { return }
            request.reservation.withdraw(nil)
            streams.removeRequest(request)
            refuseOrMove(request.name, request.callID)
        }
    }

    private func endWaiting(_ call: InFlightCall) {
        // The answer of an earlier call may have ended the connection.
        guard isOpen, !call.isAnswered else { return }
        if case .awaitingStreams(let barrier) = call.phase { return barrier.sendResponse() }
        if let stream = call.stream {
            withdraw(call)
            return refuseOrMove(stream, call.callID)
        }
        guard call.repeated == nil else { return }
        let hasBegun: Bool
        switch call.phase {
        case .awaitingExecution: return
        case .forwarded(let request):
            if request.isRepeatable { return }
            hasBegun = request.mayHaveBegun
        case .running, .readingStore: hasBegun = true
        case .intercepted:
            hasBegun = call.intercepted?.hasOutcome == true
            // The response is recorded: the client repeats the call.
            if hasBegun, call.mayHaveRun { return }
        default: hasBegun = false
        }
        if let upstream, !hasBegun {
            endInterception(of: call)
            withdraw(call)
            return upstream.refuse(call.callID)
        }
        call.cancel()
        finish(call, .failure(hasBegun ? Self.unknown : Self.notMade))
    }

    /// Refuses a stream that does not start here, or moves it to the client's next connection if the client has it already.
    private func refuseOrMove(_ stream: RequestedStream, _ callID: [UInt8]) {
        if !beginsElsewhere(stream, callID) { refuse(stream, callID, Self.notMade) }
    }
}
