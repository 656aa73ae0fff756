internal import Bytes
internal import Networking
internal import Platform
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire

/// Calls of methods that may suspend, as long as they have not.
extension ServerConnection: CallOwner {
    /// Has a call run behind those that may suspend too and have come before it; until then, it takes no more than a place in their
    /// line.
    ///
    /// - Returns: false when it takes more than that: then nothing has been done.
    func standsInLine(_ method: ActorMethod, _ record: ActorRecord, _ message: borrowing Message) -> Bool {
        // What is told of a call, and references to its client's actors, are bound to its task: that is for it alone.
        guard hosting == nil, !isCounted, !shard.events.wants(.callsVersionsOrSpans), shard.calls.takes(record) else {
            return false
        }
        let callID = Array(message.callID)
        guard running.isEmpty || running[callID] == nil, record.life.enter() else { return false }
        let bytes = message.bytes.count + CallLoad.overhead
        if let refusal = refusal(ofBytes: bytes) {
            record.life.leave()
            fail(message, refusal)
            return true
        }
        load.count += 1
        load.bytes += bytes
        shard.counts.count(.callsBegun)
        let limit = timeLimit(of: message)
        asCaller(nil) {
            do {
                let operation = try shard.states.operation(record, method, message, dates)
                shard.calls.add(
                    QueuedCall(
                        operation, of: record, method, callID: callID, bytes: bytes, within: limit,
                        by: MonotonicClock.now &+ limit.nanoseconds, for: self))
            } catch {
                record.life.leave()
                giveBack(bytes)
                fail(message, method.hidesErrors(record.type) ? SecretError.hiding(error) : error)
            }
        }
        return true
    }

    private func giveBack(_ bytes: Int) {
        load.count -= 1
        load.bytes -= bytes
        memory?.release(bytes)
        shard.counts.count(.callsEnded)
    }

    func didRun(_ call: borrowing QueuedCall, _ outcome: CallOutcome) {
        call.record.life.leave()
        giveBack(call.bytes)
        shard.didCall(call.method.row)
        guard isOpen else { return }
        do {
            let result = try outcome.get()
            shard.reply.pointee.reset(keepingAtMost: ServerShard.keptReply)
            try result.write(with: shard.coder(writing: dates), into: &shard.reply.pointee)
            let bytes = shard.reply.pointee.bytes
            call.callID.withUnsafeBytes { succeed($0, result.isVoid ? nil : bytes) }
        } catch {
            fail(call.callID, call.method.hidesErrors(call.record.type) ? SecretError.hiding(error) : error)
        }
    }

    func detach(_ queued: borrowing QueuedCall) -> (call: any CallUnderWay, completion: CallCompletion)? {
        let life = queued.record.life
        let callID = queued.callID
        guard running[callID] == nil else {
            life.leave()
            giveBack(queued.bytes)
            tell(
                .malformedEnvelope,
                "callID '\(String(decoding: callID, as: UTF8.self))' is in use by a call under way")
            return nil
        }
        let call = RunningCall(queued, on: shard.reactor)
        call.row = queued.method.row
        call.home = shard.states
        call.isAtWork = true
        if isOpen {
            time(call, within: queued.limit)
            running[callID] = call
        } else {
            leave(call)
            call.abandon()
        }
        let hidesErrors = queued.method.hidesErrors(queued.record.type)
        let home = shard.states
        return (
            call,
            { outcome in
                life.leave()
                self.finish(call, hidesErrors ? outcome.mapError { SecretError.hiding($0) } : outcome, from: home)
            }
        )
    }
}
