internal import Bytes
internal import Networking
internal import Platform
internal import Transports
package import TrebuchetActors
internal import TrebuchetWire

/// Calls of methods that may suspend, until they do.
extension ServerConnection: CallQueueOwner {
    /// Queues a call behind earlier calls that may suspend. Until it runs, it occupies only an element of the call queue.
    ///
    /// - Returns: false when the actor has been deactivated; nothing has been done then.
    func enqueue(_ method: ActorMethod, _ record: ActorRecord, _ message: borrowing Message) -> Bool {
        guard record.actorInstance.enter() else { return false }
        let callID = Array(message.callID)
        let bytes = message.bytes.count + CallLoad.overhead
        if let refusal = refusal(ofBytes: bytes) {
            record.actorInstance.removeUser()
            fail(message, refusal)
            return true
        }
        load.count += 1
        load.bytes += bytes
        shard.counts.count(.callsBegun)
        let limit = timeLimit(of: message)
        let caller = caller
        Self.withCaller(caller, nil) {
            do {
                let operation = try shard.states.operation(record, method, message)
                shard.calls.enqueue(
                    QueuedCall(
                        operation, of: record, method, callID: callID, bytes: bytes, within: limit,
                        by: MonotonicClock.now &+ limit.nanoseconds, from: caller, for: self))
                queued += 1
            } catch {
                record.actorInstance.removeUser()
                releaseBytes(bytes)
                fail(message, method.hidesErrors(record.type) ? RedactedError.hiding(error) : error)
            }
        }
        return true
    }

    private func releaseBytes(_ bytes: Int) {
        load.count -= 1
        load.bytes -= bytes
        memory?.release(bytes)
        shard.counts.count(.callsEnded)
    }

    package func didRun(_ call: borrowing QueuedCall, _ outcome: CallOutcome) {
        queued -= 1
        respond(to: call, outcome)
    }

    package func didWaitForCommit(_ call: borrowing QueuedCall) { queued -= 1 }

    package func respond(to call: borrowing QueuedCall, _ outcome: CallOutcome) {
        call.record.actorInstance.removeUser()
        releaseBytes(call.bytes)
        shard.didCall(call.method.row)
        guard isOpen else { return }
        do {
            let result = try outcome.get()
            shard.reply.pointee.reset(keepingAtMost: ServerShard.retainedReplyCapacity)
            try result.write(with: shard.coder, into: &shard.reply.pointee)
            let bytes = shard.reply.pointee.bytes
            call.callID.withUnsafeBytes { succeed($0, result.isVoid ? nil : bytes) }
        } catch {
            fail(call.callID, call.method.hidesErrors(call.record.type) ? RedactedError.hiding(error) : error)
        }
    }

    /// Records the queued calls of this connection in `running`.
    func recordQueuedCalls() { if queued > 0 { shard.calls.flush() } }

    package func detach(_ queued: borrowing QueuedCall) -> (call: any CancellableCall, completion: CallCompletion) {
        self.queued -= 1
        let instance = queued.record.actorInstance
        let call = InFlightCall(queued, on: shard.reactor)
        call.row = queued.method.row
        call.home = shard.states
        call.isAtWork = true
        if isOpen {
            time(call, within: queued.limit)
            // Another call has taken its callID since it started: it counts, but cannot be found.
            call.isUnlisted = running[call.callID] != nil
            if call.isUnlisted { displacedCalls.append(call) } else { running[call.callID] = call }
        } else {
            releaseCall(call)
            call.abandon()
        }
        let hidesErrors = queued.method.hidesErrors(queued.record.type)
        let home = shard.states
        return (
            call,
            { outcome in
                instance.removeUser()
                self.finish(call, hidesErrors ? outcome.mapError { RedactedError.hiding($0) } : outcome, from: home)
            }
        )
    }
}
