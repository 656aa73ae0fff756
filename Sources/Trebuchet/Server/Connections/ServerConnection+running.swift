internal import Bytes
internal import Networking
internal import TrebuchetWire

/// Calls under way: from when they are noted to their answer, their deadline or the end of the connection.
extension ServerConnection {
    /// Notes a call that is not answered at once; nil when it was refused.
    ///
    /// - Parameters:
    ///   - isInTransit: it runs in place on another reactor.
    ///   - isPermitted: whether the rules, if there are any, have just permitted it.
    func begin(
        _ message: borrowing Message, isInTransit: Bool = false, isPermitted: Bool = true
    ) -> RunningCall? {
        begin(message, Array(message.callID), isInTransit: isInTransit, isPermitted: isPermitted)
    }

    /// - Parameter callID: under which it can be cancelled.
    func begin(
        _ message: borrowing Message, _ callID: [UInt8], isInTransit: Bool = false, isPermitted: Bool = true
    ) -> RunningCall? {
        // Before anything of an app may run here.
        let earlier = takeContinued()
        let permission = isPermitted ? grants?.takePermission() ?? earlier?.permission : earlier?.permission
        noteQueued()
        guard running[callID] == nil else {
            let text = "callID '\(String(decoding: callID, as: UTF8.self))' is in use by a call under way"
            tellRefusal(of: message, TrebuchetError(.init(.malformedEnvelope), text))
            tell(.malformedEnvelope, text)
            return nil
        }
        let bytes = message.bytes.count + (isInTransit ? 0 : CallLoad.overhead)
        if !isInTransit, isCounted {
            _ = account.hold(bytes)
        } else if !isInTransit, let refusal = refusal(ofBytes: bytes) {
            fail(message, refusal)
            return nil
        }
        let limit = timeLimit(of: message)
        let call = RunningCall(
            callID: callID, after: limit, on: shard.reactor, byteCount: bytes, continuing: earlier)
        call.permission = permission
        call.isInTransit = isInTransit
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
    func time(_ call: RunningCall, within limit: Duration) {
        // It holds both, until it is cancelled as the call ends or is abandoned: a weak reference would have each of them counted
        // more slowly from then on.
        call.timer = shard.reactor.schedule(at: call.deadline) {
            call.cancel()
            self.finish(call, .failure(TrebuchetError(.timeout, "the call took longer than \(limit)")))
        }
    }

    /// How long a call may take.
    func timeLimit(of message: borrowing Message) -> Duration {
        let limits = shard.limits
        guard let asked = message.envelope.pointee.timeoutMilliseconds else {
            return min(limits.callTimeout, limits.longestCallTimeout)
        }
        return min(.milliseconds(asked), limits.longestCallTimeout)
    }

    /// Whether nothing is under way that will be answered.
    var hasNoCalls: Bool { callsUnderWay == 0 }
    var callsUnderWay: Int { load.count + load.inTransit }

    /// Why no more calls may be under way; nil when the bytes of one more have been taken.
    func refusal(ofBytes bytes: Int) -> TrebuchetError? {
        let limits = limits
        if load.count >= limits.calls {
            didReach("callsPerConnection")
            return TrebuchetError(
                .rateLimited,
                "\(limits.calls) calls of this connection are under way already "
                    + "(ServerLimits.callsPerConnection)")
        }
        if load.answered >= limits.calls {
            didReach("callsPerConnection")
            return TrebuchetError(
                .rateLimited,
                "\(load.answered) calls of this connection whose time was over, or that were cancelled, still run or are still to be sent "
                    + "(ServerLimits.callsPerConnection)")
        }
        if load.bytes + bytes > limits.callBytes {
            didReach("callBytesPerConnection")
            return TrebuchetError(
                .rateLimited,
                "calls of this connection that are under way have \(load.bytes) bytes already, of "
                    + "\(limits.callBytes) (ServerLimits.callBytesPerConnection)")
        }
        do throws(MemoryExcess) {
            try account.take(bytes)
            return nil
        } catch {
            didReach("heldBytes")
            return TrebuchetError(.rateLimited, error.reason)
        }
    }

    /// An answer that is known waits for streams: its bytes count as what is held for its client.
    ///
    /// - Returns: false when there is no room for it, or nobody waits for it, and it goes without.
    func holdBack(_ call: RunningCall, _ answer: AnswerBehindStreams) -> Bool {
        guard running[call.callID] === call, call.answer == nil, (try? account.take(answer.bytes)) != nil else {
            return false
        }
        call.answer = answer
        return true
    }

    /// Where the bytes of its calls count.
    private var account: MemoryAccount {
        if let memory { return memory }
        let made = link.memory ?? MemoryAccount(limit: .max, server: shard.parts.memory)
        memory = made
        return made
    }

    /// Nobody waits for a call any more: it gives back what `begin` took. What runs on its behalf, or is on its way to another
    /// node, still has its memory and counts until it has ended: else who asks and does not wait could have any number of methods run.
    func leave(_ call: RunningCall) {
        if let departure = call.relayed?.departure {
            call.relayed = nil
            call.isAtWork = true
            departure.onEnd { [shard] in shard.reactor.execute { self.didWork(call) } }
        }
        if call.isAtWork { call.isOutlived = true }
        if let answer = call.answer {
            call.answer = nil
            answer.drop()
            memory?.release(answer.bytes)
        }
        shard.counts.count(.callsEnded)
        guard !call.isInTransit else {
            if !call.isOutlived { didArrive(call) }
            return
        }
        load.count -= 1
        load.bytes -= call.byteCount
        if call.isOutlived { load.answered += 1 } else { memory?.release(call.byteCount) }
    }

    /// What ran on behalf of a call has ended.
    func didWork(_ call: RunningCall) {
        call.isAtWork = false
        guard call.isOutlived else { return }
        call.isOutlived = false
        guard !call.isInTransit else { return didArrive(call) }
        load.answered -= 1
        memory?.release(call.byteCount)
    }

    /// A call has come back from another reactor.
    private func didArrive(_ call: RunningCall) {
        load.inTransit -= 1
        load.bytesInTransit -= call.byteCount
        if load.isPaused, load.isHalfEmpty {
            load.isPaused = false
            link.resumeReading()
        }
    }

    /// Takes back `begin`.
    func withdraw(_ call: RunningCall) {
        guard call.end(), running.removeValue(forKey: call.callID) != nil else { return }
        // Who listens hears of it again when it begins elsewhere.
        call.told?.tell(endAt: shard.events, .unavailable)
        leave(call)
    }

    /// Answers a call, from whatever thread it ended on.
    ///
    /// - Parameter home: the reactor's shard on which it ran in place or in a task; nil where it ran on no reactor.
    func finish(_ call: RunningCall, _ outcome: CallOutcome, from home: SystemShard?) {
        // What an actor of no reactor has changed is on its way here, even if it ran on this thread.
        if home != nil, shard.reactor.isCurrent {
            didWork(call)
            return finish(call, outcome)
        }
        guard let crossing = call.crossing, case .success(let result) = outcome else {
            return shard.deliver(from: home) {
                self.didWork(call)
                self.finish(call, outcome, behindStreamsOf: home)
            }
        }
        crossing.note(result.byteCount)
        shard.deliver(from: home) {
            self.didWork(call)
            self.finish(call, outcome, behindStreamsOf: home)
            crossing.untaken += result.byteCount
            // As for calls that run here: none goes on while nobody takes the answers.
            if self.link.isWritable || !self.isOpen { crossing.take() }
        }
    }

    func finish(_ call: RunningCall, _ outcome: CallOutcome) {
        guard call.end() else { return }
        if call.isUnlisted || running.removeValue(forKey: call.callID) != nil { leave(call) }
        guard isOpen else { return didEnd(call, code(of: outcome)) }
        do {
            let result = try outcome.get()
            shard.reply.pointee.reset(keepingAtMost: ServerShard.keptReply)
            try result.write(with: shard.coder(writing: dates), into: &shard.reply.pointee)
            let bytes = shard.reply.pointee.bytes
            call.callID.withUnsafeBytes {
                didEnd(call, code($0, bytes))
                succeed($0, result.isVoid ? nil : bytes, call.told)
            }
        } catch {
            didEnd(call, code(of: error))
            guard let stream = call.stream else {
                return call.callID.withUnsafeBytes { fail($0, error, call.told) }
            }
            refuse(stream, call.callID, error)
        }
    }

    /// The client does not want the answer any more.
    func cancel(_ message: borrowing Message) {
        noteQueued()
        guard let call = running[Array(message.callID)] else {
            if cancelCrossing(message.callID) { return }
            if let relays { _ = postpones(message, relays) }
            return
        }
        call.cancel()
        finish(call, .failure(TrebuchetError(.cancelled, "the call was cancelled by its caller")))
    }
}
