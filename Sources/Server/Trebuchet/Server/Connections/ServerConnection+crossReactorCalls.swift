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
        let crossing = crossing(to: there.reactor)
        let size = message.bytes.count
        let caller = caller
        let batch: CrossReactorCallBatch
        if let open = crossing.open, open.hosting === clientActorHost, open.hasRoom(for: size),
            callerConnection == nil || Caller.areIdentical(open.caller, caller)
        {
            batch = open
        } else {
            batch = shard.acquireBatch()
            let ahead = shard.reactor.timeAhead
            batch.startBatch(crossing, clientActorHost, caller, timeAhead: ahead) { batch, slice, room in
                there.run(batch, of: self, &slice, room: room)
            }
            crossing.open = batch
            crossing.inFlight.append(batch)
            shard.reactor.gather(batch, for: there.reactor)
        }
        // A call that waited in a queue keeps its deadline.
        let now = shard.reactor.now
        let limit =
            removeContinuedCall().map { $0.deadline > now ? $0.deadline - now : 0 }
            ?? timeLimit(of: message).nanoseconds
        batch.addCall(record, method, message, limit: limit)
        watch(crossing, until: batch.beganByReactor &+ limit)
        if calls.countInTransit(bytes: size) { link.pauseReading() }
        shard.counts.count(.callsBegun)
        return true
    }

    // MARK: Answers

    /// Receives the responses of a batch.
    func receiveResponses(_ answers: CrossReactorReplies, of batch: CrossReactorCallBatch, from home: SystemShard) {
        guard let crossing = batch.crossing else { return }
        // Its changes may be in streams of that reactor that are starting.
        let awaitsStreams = streams.hasPendingFirstValues && isOpen && awaitsStreams(of: home)
        let now = MonotonicClock.now
        var returned = 0
        let takeAll = {
            answers.forEach { index, outcome in
                let call = batch[index]
                if case .deferred = outcome { return batch.retainForTask() }
                returned += 1
                guard batch.answer(index) else { return self.didArrive(bytes: Int(call.count)) }
                if awaitsStreams || outcome.isDeactivated { return self.adopt(call, of: batch, outcome, from: home) }
                self.shard.counts.count(.callsEnded)
                self.shard.counts.count(
                    row: batch.targets[call.target].method.row, duration: now &- batch.began)
                self.didArrive(bytes: Int(call.count))
                guard self.isOpen else { return }
                switch outcome {
                case .result(let bytes): self.succeed(batch.callID(call), bytes.isEmpty ? nil : bytes)
                case .failed(let error): self.fail(batch.callID(call), error)
                case .deactivated, .deferred, .withdrawn: break
                }
            }
        }
        // The link of a closed connection does nothing.
        if isOpen { inOneWrite(takeAll) } else { takeAll() }
        crossing.unreadCount += answers.byteCount
        // As for calls of this reactor: none continues while the client does not read the responses.
        if link.isWritable || !isOpen { crossing.markResponsesRead() }
        didReturn(returned, of: batch, crossing)
    }

    /// Receives the response of a call that ran in a task.
    func receiveResponse(_ outcome: CallOutcome, of index: Int, in batch: CrossReactorCallBatch, from home: SystemShard)
    {
        guard let crossing = batch.crossing else { return }
        let call = batch[index]
        if !batch.answer(index) {
            didArrive(bytes: Int(call.count))
        } else if let running = registerCall(call, of: batch) {
            finish(running, outcome, behindStreamsOf: home)
        }
        didReturn(1, of: batch, crossing)
    }

    private func didReturn(_ count: Int, of batch: CrossReactorCallBatch, _ crossing: CrossReactorCallQueue) {
        batch.didReturn(count)
        if calls.mayResumeReading() { link.resumeReading() }
        guard batch.unanswered == 0 else { return }
        crossing.inFlight.removeAll { $0 === batch }
        shard.releaseBatch(batch)
    }

    private func didArrive(bytes: Int) {
        calls.releaseInTransit(bytes: bytes)
    }

    /// Converts a call that cannot be answered yet into a separate call.
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
            let target = batch.targets[call.target]
            let bytes = Array(batch.bytes(call))
            running.timer = shard.reactor.schedule(
                after: .nanoseconds(Int64(running.deadline &- min(running.deadline, shard.reactor.now)))
            ) {
                running.cancel()
                self.finish(running, .failure(Self.timeout(call)))
            }
            guard let owned = shard.withMessage(bytes, { OwnedMessage($0) }) else {
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
            didArrive(bytes: Int(call.count))
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

    /// Cancels a call that is on its way; false when no such call has the callID.
    func cancelCrossing(_ callID: UnsafeRawBufferPointer) -> Bool {
        for crossing in crossReactorQueues {
            for batch in crossing.inFlight {
                for index in 0..<batch.count where !batch.isAnswered(index) {
                    guard batch.callID(batch[index]).elementsEqual(callID) else { continue }
                    abandonCall(index, of: batch, TrebuchetError(.cancelled, "the call was cancelled by its caller"))
                    batch.cancelTasks()
                    return true
                }
            }
        }
        return false
    }

    /// Ends all calls that are on their way.
    ///
    /// - Parameter error: The error for the client; nil when the connection is closed.
    func abandonCrossing(_ error: TrebuchetError? = nil) {
        for crossing in crossReactorQueues {
            crossing.timer?.cancel()
            crossing.timer = nil
            for batch in crossing.inFlight {
                for index in 0..<batch.count where !batch.isAnswered(index) { abandonCall(index, of: batch, error) }
                batch.cancelTasks()
            }
            crossing.markResponsesRead()
        }
    }

    private func abandonCall(_ index: Int, of batch: CrossReactorCallBatch, _ error: TrebuchetError?) {
        let call = batch[index]
        batch.withdraw(index)
        shard.counts.count(.callsEnded)
        guard let error else { return }
        shard.counts.count(row: batch.targets[call.target].method.row, duration: MonotonicClock.now &- batch.began)
        fail(batch.callID(call), error)
    }

    private static func timeout(_ call: CrossReactorCallBatch.Call) -> TrebuchetError {
        TrebuchetError(.timeout, "the call took longer than \(Duration.nanoseconds(Int64(call.limit)))")
    }

    /// Sets one timer for all calls that are on their way to one reactor; it is renewed for the calls that remain.
    private func watch(_ crossing: CrossReactorCallQueue, until deadline: UInt64) {
        guard deadline < crossing.watchedUntil else { return }
        crossing.timer?.cancel()
        crossing.watchedUntil = deadline
        let now = shard.reactor.now
        // The timer retains both until it fires or the connection ends.
        crossing.timer = shard.reactor.schedule(after: .nanoseconds(Int64(deadline &- min(now, deadline)))) {
            self.checkDeadlines(of: crossing)
        }
    }

    private func checkDeadlines(of crossing: CrossReactorCallQueue) {
        (crossing.timer, crossing.watchedUntil) = (nil, .max)
        let now = shard.reactor.now
        var next = UInt64.max
        for batch in crossing.inFlight {
            var isAnyAbandoned = false
            for index in 0..<batch.count where !batch.isAnswered(index) {
                let call = batch[index]
                let deadline = batch.deadline(call)
                if deadline > now {
                    next = min(next, deadline)
                } else {
                    isAnyAbandoned = true
                    abandonCall(index, of: batch, Self.timeout(call))
                }
            }
            // The tasks of a batch without a timed-out call are left alone: it may have returned and serve other calls.
            if isAnyAbandoned { batch.cancelTasks() }
        }
        // A response may have ended the connection.
        if next < .max, isOpen { watch(crossing, until: next) }
    }
}

extension CrossReactorReplies.Outcome {
    fileprivate var isDeactivated: Bool { if case .deactivated = self { true } else { false } }
}

extension ServerShard {
    /// The maximum number of batches that are kept for reuse.
    private static let maximumSpareBatches = 32

    func acquireBatch() -> CrossReactorCallBatch { spareBatches.popLast() ?? CrossReactorCallBatch() }

    func releaseBatch(_ batch: CrossReactorCallBatch) {
        guard batch.isReusable, spareBatches.count < Self.maximumSpareBatches else { return }
        batch.reset()
        spareBatches.append(batch)
    }

    /// Runs calls of a connection of another reactor to actors of this one, until their time slice is used up. Responses leave at
    /// the end of the turn.
    ///
    /// - Parameter room: The bytes of responses that may still be produced.
    /// - Returns: true when all calls have run.
    func run(_ batch: CrossReactorCallBatch, of connection: ServerConnection, _ slice: inout TimeSlice, room: Int)
        -> Bool
    {
        guard let crossing = batch.crossing, let scratch = scans.reserve() else { return false }
        defer { scans.release() }
        let answers = batch.replies
        ServerConnection.withCaller(batch.caller, batch.hosting) {
            var (target, targetPlace) = (batch.targets[batch[batch.next].target], batch[batch.next].target)
            while batch.next < batch.count, answers.byteCount < room {
                let index = batch.next
                let call = batch[index]
                batch.next += 1
                if call.target != targetPlace { (target, targetPlace) = (batch.targets[call.target], call.target) }
                if batch.isWithdrawn(index) {
                    answers.addWithdrawn()
                } else if target.record.actorInstance.isDeactivated {
                    answers.appendDeactivated()
                } else if target.record.actorInstance.isStarting {
                    if deferCall(call, index, of: batch, target, connection) {
                        answers.appendDeferred()
                    } else {
                        answers.appendDeactivated()
                    }
                } else {
                    run(call, of: batch, target, scratch, answers)
                }
                // As for calls over connections of this reactor.
                if states.isMarked { states.callDidEnd() }
                if slice.isCheckDue(bytes: Int(call.count)),
                    slice.isUsedUp(lastClockReading: &reactor.lastClockReading)
                {
                    break
                }
            }
        }
        let isDone = batch.next == batch.count
        if !isDone {
            batch.replies = CrossReactorReplies()
            batch.replies.reset(from: batch.next, keepingAtMost: 0)
        }
        crossing.addUnreadBytes(answers.byteCount)
        let home = states
        connection.shard.deliver(from: home, answers: answers.count) {
            connection.receiveResponses(answers, of: batch, from: home)
        }
        return isDone
    }

    private func run(
        _ call: CrossReactorCallBatch.Call, of batch: CrossReactorCallBatch, _ target: CrossReactorCallBatch.Target,
        _ scratch: UnsafeMutablePointer<ScannedEnvelope>, _ answers: CrossReactorReplies
    ) {
        let bytes = batch.bytes(call)
        target.record.actorInstance.didRunInPlace()
        do {
            if let arguments = call.arguments {
                scratch.pointee.replaceArguments(arguments.count, arguments.first, arguments.second)
            } else {
                try scratch.pointee.scan(bytes)
            }
            try callInPlace(
                target.record, target.method, Message(bytes: bytes, envelope: UnsafePointer(scratch)))
            answers.append(reply.pointee.bytes)
        } catch {
            answers.append(
                self.hidesErrors(of: target.method, target.record.type) ? RedactedError.hiding(error) : error)
        }
    }

    /// Queues a call behind earlier calls that have not started yet. Returns false when the actor has been deactivated.
    private func deferCall(
        _ call: CrossReactorCallBatch.Call, _ index: Int, of batch: CrossReactorCallBatch,
        _ target: CrossReactorCallBatch.Target,
        _ connection: ServerConnection
    ) -> Bool {
        let elapsed = MonotonicClock.now &- batch.began
        let rest = Duration.nanoseconds(Int64(call.limit &- min(elapsed, call.limit)))
        let running = InFlightCall(callID: [], after: rest, on: reactor, byteCount: 0)
        let home = states
        batch.deferredCalls[index] = running
        let isThere = withMessage(Array(batch.bytes(call))) {
            run(target.method, of: target.record, $0, running) { outcome in
                connection.shard.deliver(from: home) {
                    connection.receiveResponse(outcome, of: index, in: batch, from: home)
                }
            }
        }
        return isThere == true
    }
}
