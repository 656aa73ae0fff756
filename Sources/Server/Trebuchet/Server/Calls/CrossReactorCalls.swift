internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// The calls of one connection to actors of other reactors, from the first one on. Synchronous calls of a turn are sent together in a
/// `CrossReactorCallBatch`. Isolated to the connection's reactor.
final class CrossReactorCalls {
    /// The connection, which has this object.
    private unowned let connection: ServerConnection
    /// One for each reactor.
    private(set) var queues: [CrossReactorCallQueue] = []

    init(of connection: ServerConnection) { self.connection = connection }

    private var shard: ServerShard { connection.shard }

    func queue(to reactor: Reactor) -> CrossReactorCallQueue {
        if let queue = queues.first(where: { $0.reactor === reactor }) { return queue }
        let queue = CrossReactorCallQueue(on: reactor)
        queues.append(queue)
        return queue
    }

    /// Sends a call to another reactor in a batch.
    ///
    /// - Parameter limit: The time limit in nanoseconds.
    func send(
        _ method: ActorMethod, of record: ActorRecord, to there: ServerShard, _ message: borrowing Message,
        within limit: UInt64
    ) {
        let queue = queue(to: there.reactor)
        let (caller, hosting) = (connection.authorization.caller, connection.clientActorHost)
        let batch: CrossReactorCallBatch
        if let open = queue.openBatch(for: message.bytes.count, hosting, caller) {
            batch = open
        } else {
            batch = shard.spareBatches.removeLast()
            batch.startBatch(queue, of: connection, to: there, hosting, caller)
            shard.reactor.gather(batch, for: there.reactor)
        }
        batch.addCall(record, method, message, limit: limit)
        watch(queue, until: batch.beganByReactor &+ limit)
        if connection.calls.countInTransit(bytes: message.bytes.count) { connection.link.pauseReading() }
        shard.counts.count(.callsBegun)
    }

    // MARK: Responses

    /// Receives the responses of a batch.
    func receiveResponses(_ replies: CrossReactorReplies, of batch: CrossReactorCallBatch, from home: SystemShard) {
        guard let queue = batch.queue else { return }
        let connection = connection
        // Its changes may be in streams of that reactor that are starting.
        let awaitsStreams =
            connection.streams.hasPendingFirstValues && connection.isOpen && connection.awaitsStreams(of: home)
        let now = MonotonicClock.now
        var returned = 0
        let receiveAll = {
            replies.forEach { index, outcome in
                let call = batch[index]
                if case .deferred = outcome { return batch.retainForTask() }
                returned += 1
                guard batch.answer(index) else { return connection.calls.releaseInTransit(bytes: Int(call.count)) }
                if awaitsStreams || outcome.isDeactivated { return self.adopt(call, of: batch, outcome, from: home) }
                self.shard.counts.count(.callsEnded)
                self.shard.counts.count(row: batch.targets[call.target].method.row, duration: now &- batch.began)
                connection.calls.releaseInTransit(bytes: Int(call.count))
                guard connection.isOpen else { return }
                switch outcome {
                case .result(let bytes): connection.succeed(batch.callID(call), bytes.isEmpty ? nil : bytes)
                case .failed(let error): connection.fail(batch.callID(call), error)
                case .deactivated, .deferred, .withdrawn: break
                }
            }
        }
        // The link of a closed connection does nothing.
        if connection.isOpen { connection.inOneWrite(receiveAll) } else { receiveAll() }
        didReceive(replies.byteCount, from: queue)
        didReturn(returned, of: batch, queue)
    }

    /// Receives the response of a call that ran in a task.
    func receiveResponse(_ outcome: CallOutcome, of index: Int, in batch: CrossReactorCallBatch, from home: SystemShard)
    {
        guard let queue = batch.queue else { return }
        let call = batch[index]
        if !batch.answer(index) {
            connection.calls.releaseInTransit(bytes: Int(call.count))
        } else if let running = registerCall(call, of: batch) {
            connection.finish(running, outcome, behindStreamsOf: home)
        }
        didReturn(1, of: batch, queue)
    }

    /// Notes that responses have arrived. As for calls of this reactor, none continues while the client does not read the responses.
    func didReceive(_ bytes: Int, from queue: CrossReactorCallQueue) {
        queue.unreadCount += bytes
        if connection.link.isWritable || !connection.isOpen { queue.markResponsesRead() }
    }

    func linkDidBecomeWritable() { for queue in queues { queue.markResponsesRead() } }

    private func didReturn(_ count: Int, of batch: CrossReactorCallBatch, _ queue: CrossReactorCallQueue) {
        batch.didReturn(count)
        if connection.calls.mayResumeReading() { connection.link.resumeReading() }
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
        let connection = connection
        switch outcome {
        case .result(let bytes):
            connection.finish(running, .success(_CallResult(encoded: Array(bytes))), behindStreamsOf: home)
        case .failed(let error): connection.finish(running, .failure(error), behindStreamsOf: home)
        case .deactivated:
            connection.time(running, within: .nanoseconds(Int64(call.limit)))
            let target = batch.targets[call.target]
            guard let owned = shard.withMessage(batch.bytes(call), { OwnedMessage($0) }) else {
                let error = TrebuchetError(.internal, "too many messages at once")
                return connection.finish(running, .failure(error))
            }
            CallStart(method: target.method, call: running, connection: connection) {
                connection.finish(running, $0, from: running.home)
            }
            .awaitActor(target.record.name, owned)
        case .deferred, .withdrawn: break
        }
    }

    /// Records a call separately; nil when another call has its callID by now, or the connection is closed.
    private func registerCall(_ call: CrossReactorCallBatch.Call, of batch: CrossReactorCallBatch) -> InFlightCall? {
        let callID = Array(batch.callID(call))
        guard connection.isOpen, connection.calls[callID] == nil else {
            shard.counts.count(.callsEnded)
            connection.calls.releaseInTransit(bytes: Int(call.count))
            connection.fail(
                callID, TrebuchetError(.init(.malformedEnvelope), "callID is in use by an in-flight call"))
            return nil
        }
        let now = shard.reactor.now
        let deadline = max(batch.deadline(call), now)
        let inFlight = InFlightCall(
            callID: callID, after: .nanoseconds(Int64(deadline &- now)), on: shard.reactor, byteCount: Int(call.count),
            isInTransit: true)
        inFlight.caller = batch.caller
        inFlight.row = batch.targets[call.target].method.row
        connection.calls.list(inFlight)
        return inFlight
    }

    // MARK: Calls that are not waited for

    /// Ends the call with this callID. Returns false when no call in a batch has it.
    func end(_ callID: UnsafeRawBufferPointer, _ error: TrebuchetError) -> Bool {
        for queue in queues {
            guard let call = queue.withdraw(callID) else { continue }
            end(call, error)
            return true
        }
        return false
    }

    /// Ends all calls that are on their way.
    ///
    /// - Parameter error: The error for the client; nil when the connection is closed.
    func endAll(_ error: TrebuchetError?) {
        for queue in queues { for call in queue.withdrawAll() { end(call, error) } }
    }

    private func end(_ call: CrossReactorCallBatch.Withdrawn, _ error: TrebuchetError?) {
        shard.counts.count(.callsEnded)
        guard let error else { return }
        shard.counts.count(row: call.method.row, duration: MonotonicClock.now &- call.batch.began)
        connection.fail(call.callID, error)
    }

    /// Ends the calls of a queue at their deadlines. The timer is renewed for the calls that remain.
    private func watch(_ queue: CrossReactorCallQueue, until deadline: UInt64) {
        guard deadline < queue.watchedUntil else { return }
        // The timer retains the connection until it fires or the connection ends.
        queue.setTimer(until: deadline, by: shard.reactor) { [self, connection] in
            let (expired, next) = queue.withdrawExpired(at: shard.reactor.now)
            for call in expired { end(call, call.timeout) }
            // A response may have ended the connection.
            if let next, connection.isOpen { watch(queue, until: next) }
        }
    }
}
