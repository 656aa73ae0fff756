internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// Synchronous calls to actors of other reactors. The calls of a turn are sent together in a `CrossReactorCallBatch`.
extension ServerConnection {
    /// Sends a call to another reactor in a batch. Returns false after shutdown; nothing has been done then.
    func cross(_ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message) -> Bool {
        guard let home = record.home, let there = shard.sibling(on: home) else { return false }
        let queue = crossReactorQueues.queue(to: there.reactor)
        let size = message.bytes.count
        let caller = authorization.caller
        let batch: CrossReactorCallBatch
        if let open = queue.openBatch(for: size, clientActorHost, caller) {
            batch = open
        } else {
            batch = shard.spareBatches.removeLast()
            batch.startBatch(queue, of: self, to: there, clientActorHost, caller)
            shard.reactor.gather(batch, for: there.reactor)
        }
        // A call that waited in a queue keeps its deadline.
        let now = shard.reactor.now
        let limit =
            removeContinuedCall().map { $0.deadline > now ? $0.deadline - now : 0 }
            ?? timeLimit(of: message).nanoseconds
        batch.addCall(record, method, message, limit: limit)
        watch(queue, until: batch.beganByReactor &+ limit)
        if calls.countInTransit(bytes: size) { link.pauseReading() }
        shard.counts.count(.callsBegun)
        return true
    }

    // MARK: Responses

    /// Receives the responses of a batch.
    func receiveResponses(_ replies: CrossReactorReplies, of batch: CrossReactorCallBatch, from home: SystemShard) {
        guard let queue = batch.queue else { return }
        // Its changes may be in streams of that reactor that are starting.
        let awaitsStreams = streams.hasPendingFirstValues && isOpen && awaitsStreams(of: home)
        let now = MonotonicClock.now
        var returned = 0
        let receiveAll = {
            replies.forEach { index, outcome in
                let call = batch[index]
                if case .deferred = outcome { return batch.retainForTask() }
                returned += 1
                guard batch.answer(index) else { return self.calls.releaseInTransit(bytes: Int(call.count)) }
                if awaitsStreams || outcome.isDeactivated { return self.adopt(call, of: batch, outcome, from: home) }
                self.shard.counts.count(.callsEnded)
                self.shard.counts.count(
                    row: batch.targets[call.target].method.row, duration: now &- batch.began)
                self.calls.releaseInTransit(bytes: Int(call.count))
                guard self.isOpen else { return }
                switch outcome {
                case .result(let bytes): self.succeed(batch.callID(call), bytes.isEmpty ? nil : bytes)
                case .failed(let error): self.fail(batch.callID(call), error)
                case .deactivated, .deferred, .withdrawn: break
                }
            }
        }
        // The link of a closed connection does nothing.
        if isOpen { inOneWrite(receiveAll) } else { receiveAll() }
        didReceive(replies.byteCount, from: queue)
        didReturn(returned, of: batch, queue)
    }

    /// Receives the response of a call that ran in a task.
    func receiveResponse(_ outcome: CallOutcome, of index: Int, in batch: CrossReactorCallBatch, from home: SystemShard)
    {
        guard let queue = batch.queue else { return }
        let call = batch[index]
        if !batch.answer(index) {
            calls.releaseInTransit(bytes: Int(call.count))
        } else if let running = registerCall(call, of: batch) {
            finish(running, outcome, behindStreamsOf: home)
        }
        didReturn(1, of: batch, queue)
    }

    /// Notes that responses have arrived. As for calls of this reactor, none continues while the client does not read the responses.
    func didReceive(_ bytes: Int, from queue: CrossReactorCallQueue) {
        queue.unreadCount += bytes
        if link.isWritable || !isOpen { queue.markResponsesRead() }
    }

    private func didReturn(_ count: Int, of batch: CrossReactorCallBatch, _ queue: CrossReactorCallQueue) {
        batch.didReturn(count)
        if calls.mayResumeReading() { link.resumeReading() }
        guard batch.unanswered == 0 else { return }
        queue.removeBatch(batch)
        shard.spareBatches.append(batch)
    }

    /// Records a call of a batch separately, whose response waits or whose actor must be activated again.
    private func adopt(
        _ call: CrossReactorCallBatch.Call, of batch: CrossReactorCallBatch, _ outcome: CrossReactorReplies.Outcome,
        from home: SystemShard
    ) {
        guard let running = registerCall(call, of: batch) else { return }
        switch outcome {
        case .result(let bytes):
            finish(running, .success(_CallResult(encoded: Array(bytes))), behindStreamsOf: home)
        case .failed(let error): finish(running, .failure(error), behindStreamsOf: home)
        case .deactivated:
            time(running, within: .nanoseconds(Int64(call.limit)))
            let target = batch.targets[call.target]
            guard let owned = shard.withMessage(batch.bytes(call), { OwnedMessage($0) }) else {
                return finish(running, .failure(TrebuchetError(.internal, "too many messages at once")))
            }
            wait(for: target.record.name, target.method, owned, running) {
                self.finish(running, $0, from: running.home)
            }
        case .deferred, .withdrawn: break
        }
    }

    /// Records a call separately; nil when another call has its callID by now, or the connection is closed.
    private func registerCall(_ call: CrossReactorCallBatch.Call, of batch: CrossReactorCallBatch) -> InFlightCall? {
        let callID = Array(batch.callID(call))
        guard isOpen, calls[callID] == nil else {
            shard.counts.count(.callsEnded)
            calls.releaseInTransit(bytes: Int(call.count))
            if isOpen {
                fail(callID, TrebuchetError(.init(.malformedEnvelope), "callID is in use by an in-flight call"))
            }
            return nil
        }
        let now = shard.reactor.now
        let deadline = max(batch.deadline(call), now)
        let inFlight = InFlightCall(
            callID: callID, after: .nanoseconds(Int64(deadline &- now)), on: shard.reactor, byteCount: Int(call.count),
            isInTransit: true)
        inFlight.caller = batch.caller
        inFlight.row = batch.targets[call.target].method.row
        calls.list(inFlight)
        return inFlight
    }

    // MARK: Calls that are not waited for

    /// Ends all calls that are on their way.
    ///
    /// - Parameter error: The error for the client; nil when the connection is closed.
    func endCrossReactorCalls(_ error: TrebuchetError? = nil) {
        for call in crossReactorQueues.withdrawAll() { end(call, error) }
    }

    /// Ends a call that was withdrawn from its batch.
    ///
    /// - Parameter error: The error for the client; nil when the connection is closed.
    func end(_ call: CrossReactorCallBatch.Withdrawn, _ error: TrebuchetError?) {
        shard.counts.count(.callsEnded)
        guard let error else { return }
        shard.counts.count(row: call.method.row, duration: MonotonicClock.now &- call.batch.began)
        fail(call.callID, error)
    }

    /// Ends the calls of a queue at their deadlines. The timer is renewed for the calls that remain.
    private func watch(_ queue: CrossReactorCallQueue, until deadline: UInt64) {
        guard deadline < queue.watchedUntil else { return }
        queue.setTimer(until: deadline, by: shard.reactor) {
            let (expired, next) = queue.withdrawExpired(at: self.shard.reactor.now)
            for call in expired { self.end(call, call.timeout) }
            // A response may have ended the connection.
            if let next, self.isOpen { self.watch(queue, until: next) }
        }
    }
}
