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
        let permission = isPermitted ? grants?.consumePermission() ?? earlier?.permission : earlier?.permission
        recordQueuedCalls()
        guard running[callID] == nil else {
            let text = "callID '\(String(decoding: callID, as: UTF8.self))' is in use by an in-flight call"
            reportRejection(of: message, TrebuchetError(.init(.malformedEnvelope), text))
            sendError(.malformedEnvelope, text)
            return nil
        }
        let bytes = message.bytes.count + (isInTransit ? 0 : CallLoad.overhead)
        if !isInTransit, isCounted {
            _ = account.adjustUsage(by: bytes)
        } else if !isInTransit, let refusal = refusal(ofBytes: bytes) {
            fail(message, refusal)
            return nil
        }
        let limit = timeLimit(of: message)
        let call = InFlightCall(
            callID: callID, after: limit, on: shard.reactor, byteCount: bytes, continuing: earlier)
        call.permission = permission
        call.caller = caller
        call.isInTransit = isInTransit
        call.inherit(earlier, message)
        time(call, within: limit)
        running[callID] = call
        if isInTransit {
            load.inTransit += 1
            load.bytesInTransit += bytes
            if load.isFull, !load.isPaused {
                load.isPaused = true
                link.pauseReading()
            }
        } else {
            load.count += 1
            load.bytes += bytes
        }
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

    /// Keeps a response that waits for streams. Its bytes count as buffered memory of the client.
    ///
    /// - Returns: false when there is no room for it or the call has ended; the response is then sent without waiting.
    func delayResponse(_ call: InFlightCall, _ answer: ResponseBarrier) -> Bool {
        guard running[call.callID] === call, call.answer == nil, (try? account.reserve(answer.bytes)) != nil else {
            return false
        }
        call.answer = answer
        return true
    }

    /// The memory account of its calls.
    var account: MemoryAccount {
        if let memory { return memory }
        let created = link.memory ?? MemoryAccount(limit: .max, server: shard.context.memory)
        memory = created
        return created
    }

    /// Ends the accounting of a call without a waiting caller: releases what `registerCall` reserved. Work that still runs for the call, or
    /// is on its way to another server, keeps its memory and counts until it ends. Otherwise a client could start any number of
    /// methods without waiting.
    func releaseCall(_ call: InFlightCall) {
        if let forwarded = call.forwarded,
            forwarded.whenSent({ [shard] in shard.reactor.execute { self.didWork(call) } })
        {
            call.forwarded = nil
            call.isAtWork = true
        }
        if call.isAtWork { call.isAnsweredEarly = true }
        if let answer = call.answer {
            call.answer = nil
            answer.drop()
            memory?.release(answer.bytes)
        }
        shard.counts.count(.callsEnded)
        guard !call.isInTransit else {
            if !call.isAnsweredEarly { didArrive(call) }
            return
        }
        load.count -= 1
        load.bytes -= call.byteCount
        if call.isAnsweredEarly { load.answered += 1 } else { memory?.release(call.byteCount) }
    }

    /// Notes that the work for a call has ended.
    func didWork(_ call: InFlightCall) {
        call.isAtWork = false
        guard call.isAnsweredEarly else { return }
        call.isAnsweredEarly = false
        guard !call.isInTransit else { return didArrive(call) }
        load.answered -= 1
        memory?.release(call.byteCount)
    }

    /// Notes that a call has returned from another reactor.
    private func didArrive(_ call: InFlightCall) {
        load.inTransit -= 1
        load.bytesInTransit -= call.byteCount
        if load.isPaused, load.isHalfEmpty {
            load.isPaused = false
            link.resumeReading()
        }
    }

    /// Reverts `registerCall`.
    package func withdraw(_ call: InFlightCall) {
        guard call.markAnswered(), running.removeValue(forKey: call.callID) != nil else { return }
        // Event handlers are notified again when the call starts elsewhere.
        call.observedCall?.reportEnd(to: shard.events, .unavailable)
        releaseCall(call)
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
        guard let crossing = call.crossing, case .success(let result) = outcome else {
            return shard.deliver(from: home) {
                self.didWork(call)
                self.finish(call, outcome, behindStreamsOf: home)
            }
        }
        crossing.addUnreadBytes(result.byteCount)
        shard.deliver(from: home) {
            self.didWork(call)
            self.finish(call, outcome, behindStreamsOf: home)
            crossing.unreadCount += result.byteCount
            // As for calls of this reactor: none continues while the client does not read the responses.
            if self.link.isWritable || !self.isOpen { crossing.markResponsesRead() }
        }
    }

    package func finish(_ call: InFlightCall, _ outcome: CallOutcome) {
        guard let outcome = self.outcome(of: call, outcome), call.markAnswered() else { return }
        if isListed(call) { releaseCall(call) }
        guard isOpen else { return didEnd(call, code(of: outcome)) }
        do {
            let result = try outcome.get()
            shard.reply.pointee.reset(keepingAtMost: ServerShard.retainedReplyCapacity)
            try result.write(with: shard.coder, into: &shard.reply.pointee)
            let bytes = shard.reply.pointee.bytes
            call.callID.withUnsafeBytes {
                didEnd(call, code($0, bytes))
                succeed($0, result.isVoid ? nil : bytes, call.observedCall)
            }
        } catch {
            didEnd(call, code(of: error))
            guard let stream = call.stream else {
                return call.callID.withUnsafeBytes { fail($0, error, call.observedCall) }
            }
            refuse(stream, call.callID, error)
        }
    }

    /// Removes a call from the running ones; returns false if it was not among them.
    private func isListed(_ call: InFlightCall) -> Bool {
        guard call.isUnlisted else { return running.removeValue(forKey: call.callID) != nil }
        guard let index = displacedCalls.firstIndex(where: { $0 === call }) else { return false }
        displacedCalls.remove(at: index)
        return true
    }

    /// Handles the cancellation of a call by its client.
    func cancel(_ message: borrowing Message) {
        recordQueuedCalls()
        guard let call = running[Array(message.callID)] else {
            if cancelCrossing(message.callID) { return }
            _ = forwarder?.postpones(message)
            return
        }
        call.cancel()
        finish(call, .failure(TrebuchetError(.cancelled, "the call was cancelled by its caller")))
    }
}
