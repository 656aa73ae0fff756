internal import Transports

/// The persisted states and events of one exposed actor. Responses and stream updates that may show a change are sent only
/// after the change is written; events too.
///
/// The reactor's `StateWriter` collects the changes. Responses and updates wait in one of two barriers: `next` for a write that
/// has not started, `current` for the running one. After a failed write the states count as changed until a later write
/// succeeds. If the store has rejected the write, its responses are errors. If the store is unavailable, they wait for the next
/// write, limited by their deadlines and by the activation.
///
/// `@unchecked Sendable`: accessed only on the reactor of `home`, except for constants.
package final class PersistedStates: StatePersister, @unchecked Sendable {
    typealias Completion = WriteBarrier.Completion

    /// The name that the actor is exposed under.
    package let name: String
    let home: SystemShard
    private let writer: StateWriter
    /// The ownership number at the time of loading; nil if no other node can own the actor.
    private let ownership: UInt64?
    /// The calls of previous owners. Set before other code can access this object.
    package var earlier = IdempotencyIndex()
    private var logs: [PersistedLog] = []
    private var events: [PersistedEvents] = []
    /// Set for an actor with handoff state.
    var handoffState: HandoffState?
    /// Set for an actor that can have alarms.
    package var alarms: PersistedAlarms?
    private(set) var next = WriteBarrier()
    private(set) var current = WriteBarrier()
    /// Indicates whether a state has changed since the last write began, or that write has failed.
    private var hasChanged = false
    /// Set after a failed write. The store may contain its changes.
    private var isInDoubt = false
    private var isWriting = false
    private var isQueued = false
    private var isRetired = false
    /// Set while its writer waits to retry a failed write.
    var isToBeRetried = false
    /// The error of an event that was not sent. It fails the next response, normally that of the sending call.
    private var refusal: TrebuchetError?
    /// The running calls whose responses are recorded in the store.
    private var calls: [ObjectIdentifier: IdempotencyRecord] = [:]
    /// The recorded responses that wait for a write, and those that are being written.
    private var pendingResponses: [(call: IdempotencyRecord, write: StateWrite)] = []
    private var currentResponses: [(call: IdempotencyRecord, write: StateWrite)] = []

    init(name: String, home: SystemShard, writer: StateWriter, ownership: UInt64? = nil) {
        self.name = name
        self.home = home
        self.writer = writer
        self.ownership = ownership
    }

    /// Adds a state or events after loading.
    func addLog(_ log: PersistedLog) { logs.append(log) }
    func addLog(_ events: PersistedEvents) { self.events.append(events) }

    var eventBytes: Int { writer.eventBytes }

    // MARK: Changes, and responses and updates that wait for them

    func didChange() {
        guard !isElsewhere else { return }
        hasChanged = true
        queue()
    }

    func didRefuse(_ error: TrebuchetError) { if !isElsewhere { refusal = error } }

    var isPersisted: Bool { !hasChanged && !isWriting }
    /// True until the last change of this activation was written.
    var isOpen: Bool { !isRetired }
    var hasSuccessors: Bool { ownership != nil }

    private func queue() {
        guard !isQueued else { return }
        isQueued = true
        writer.scheduleWrite(of: self)
    }

    /// Runs `answer` after all changes up to now are written; immediately if they are.
    func whenWritten(_ answer: @escaping Completion) {
        if isRetired { return answer(lost) }
        if let refused = refusal {
            refusal = nil
            return whenWritten { answer($0 ?? refused) }
        }
        if hasChanged {
            next.addCompletion(answer)
            // After a failure, this call triggers a retry.
            queue()
        } else if isWriting {
            current.addCompletion(answer)
        } else {
            answer(nil)
        }
    }

    /// Returns after all changes up to now are written, with the error if they are not.
    package func written() async -> TrebuchetError? {
        await withCheckedContinuation { continuation in
            home.reactor.execute { self.whenWritten { continuation.resume(returning: $0) } }
        }
    }

    /// Answers a call that ran in place when all changes are written; immediately if they are. The bytes need not outlive this call.
    package func whenWritten(
        _ call: ResponseAwaitingCommit, _ callID: UnsafeRawBufferPointer,
        _ outcome: Result<UnsafeRawBufferPointer, any Error>
    ) {
        var outcome = outcome
        if isRetired {
            outcome = .failure(lost)
        } else if let refused = refusal {
            refusal = nil
            outcome = .failure(refused)
        }
        if isRetired || isPersisted { return call.responder.answer(callID, outcome, of: call) }
        if hasChanged {
            writer.deferResponse(call, callID, outcome, in: &next.calls)
            // After a failure, this call triggers a retry.
            queue()
        } else {
            writer.deferResponse(call, callID, outcome, in: &current.calls)
        }
    }

    /// Answers calls whose deadline has passed. Returns the next deadline.
    func timeOut(at now: UInt64) -> UInt64 {
        min(current.calls?.timeOut(at: now) ?? .max, next.calls?.timeOut(at: now) ?? .max)
    }

    /// Runs `update` after all changes up to now are written.
    ///
    /// - Parameter isWanted: Returns whether the update still has receivers, which may change during a slow write. nil for an update
    ///   captured with the changes: after a failure it is dropped, and the next write creates it again.
    func publishAfterWrite(while isWanted: (() -> Bool)?, _ update: @escaping () -> Void) {
        if isElsewhere { return }
        if hasChanged {
            next.addPublication(update, while: isWanted)
        } else if isWriting {
            current.addPublication(update, while: isWanted)
        } else {
            update()
        }
    }

    // MARK: Calls that are known after the end of the process

    /// The maximum number of responses that wait while the store fails; one write can contain them all.
    private static let maximumRecordedResponses = 16_384

    /// Starts a call. It is recorded with every write until it ends, because that write may contain its changes.
    ///
    /// - Returns: The error if too many earlier responses still wait for the store.
    func recordCallStart(_ call: IdempotencyRecord) -> TrebuchetError? {
        guard pendingResponses.count + currentResponses.count + calls.count < Self.maximumRecordedResponses else {
            return TrebuchetError(
                .unavailable,
                "\(Self.maximumRecordedResponses) responses of @Idempotent calls of actor '\(name)' already wait for the store; retry later"
            )
        }
        calls[ObjectIdentifier(call)] = call
        return nil
    }

    /// Ends a call. Its response is written with the last change; it is not recorded if there is nothing to write.
    func recordCallEnd(_ call: IdempotencyRecord, _ answer: RecordedResponse) {
        calls[ObjectIdentifier(call)] = nil
        if isRetired, call.isStartRecorded { writer.scheduleDeletion(call.key, call) }
        guard hasChanged || call.isStartRecorded, !isRetired else { return }
        pendingResponses.append((call, call.responseWrite(refusal.map { .failure($0) } ?? answer)))
        hasChanged = true
        queue()
    }

    private func recordCalls() -> [StateWrite] {
        currentResponses = pendingResponses
        pendingResponses = []
        let started = calls.values.filter { !$0.isStartRecorded }
        for call in started { call.isStartRecorded = true }
        return started.map(\.startWrite) + currentResponses.map(\.write)
    }

    /// Drops responses whose changes are only in memory. The store may contain the start records of their calls.
    private func dropPendingResponses() {
        for (call, _) in pendingResponses where call.isStartRecorded { writer.scheduleDeletion(call.key, call) }
        pendingResponses = []
    }

    /// The error of calls that this activation can no longer answer.
    private var lost: TrebuchetError {
        guard ownership == nil else {
            return .lostActivation(
                "this node lost actor '\(name)' before the store acknowledged the change: the change may have been made"
            )
        }
        return TrebuchetError(
            .unknownOutcome, "actor '\(name)' was withdrawn while the call ran: its changes are not persisted")
    }

    // MARK: Writing

    /// Returns the next writes, or nil if there are none. Waiting responses fail if a state cannot be encoded.
    ///
    /// - Parameter slices: The number of snapshot bytes that may be written as well; reduced by the returned ones.
    func beginWrite(slices: inout Int) -> [StateWrite]? {
        isQueued = false
        if isRelinquished { return nil }
        guard hasChanged else { return nextSlices(&slices).map(owned) }
        var writes: [StateWrite] = []
        do {
            for log in logs { writes += try log.changes(stateSize: writer.stateSize, of: name) }
            for log in events { writes += try log.changes(of: name) }
        } catch {
            let barrier = removeNextBarrier()
            dropPendingResponses()
            scheduleRewrite()
            fail(barrier, .internal, describe(error))
            return nil
        }
        if let handoffState { writes += handoffState.changes() }
        if let alarms { writes += alarms.changes() }
        hasChanged = false
        isWriting = true
        // Responses wait until the values that do not fit are written too.
        if handoffState?.hasMore == true { didChange() } else { (current, next) = (next, WriteBarrier()) }
        for log in logs { writer.copyIfSnapshotDue(log, of: self) }
        return owned(writes + recordCalls() + (nextSlices(&slices) ?? []))
    }

    private func owned(_ writes: [StateWrite]) -> [StateWrite] {
        guard let ownership else { return writes }
        return writes.map { write in
            var write = write
            write.ownership = ownership
            return write
        }
    }

    /// Returns the next snapshot slices; nil if there are none.
    private func nextSlices(_ most: inout Int) -> [StateWrite]? {
        guard !isRetired else { return nil }
        var writes: [StateWrite] = []
        for log in logs {
            while most > 0, let write = log.nextSlice() {
                most -= PersistedLog.sliceBytes
                writes.append(write)
            }
        }
        return writes.isEmpty ? nil : writes
    }

    /// Schedules a write of snapshot slices.
    func writeSlices() { if !isRetired { queue() } }

    func endWrite(_ error: StateStoreError?) {
        let barrier = current
        current = WriteBarrier()
        isWriting = false
        let answers = currentResponses
        currentResponses = []
        guard let error else {
            isInDoubt = false
            for (call, _) in answers { writer.scheduleDeletion(call.key, call) }
            for log in logs { log.didWrite() }
            handoffState?.didWrite()
            alarms?.didWrite()
            if logs.contains(where: \.hasSlices) { writeSlices() }
            barrier.succeed()
            return reuse(barrier)
        }
        self.pendingResponses = answers + self.pendingResponses
        if isRelinquished || ownership != nil && error.code == .conflict {
            // Another node owns the actor and continues from the log.
            let isFirst = !isRelinquished
            (isRetired, isRelinquished, current) = (true, true, barrier)
            // Before the responses, because a repeated call must not run here.
            if isFirst { writer.didRelinquish?(name) }
            return relinquish()
        }
        hasChanged = true
        isInDoubt = true
        for call in calls.values { call.isStartRecorded = false }
        scheduleRewrite()
        // A later write may acknowledge the change, so responses wait for it, within a limit.
        let waits = error.code == .unavailable && barrier.count + next.count <= Self.maximumRecordedResponses
        let left = next.insertEntries(of: barrier, withAnswers: waits) { writer.reuse($0) }
        if !waits { fail(left, .unknownOutcome, error.message) }
    }

    private func reuse(_ barrier: WriteBarrier) {
        if let calls = barrier.calls { writer.reuse(calls) }
    }

    /// Removes and returns the responses that wait for the next write. Updates with receivers continue to wait.
    private func removeNextBarrier() -> WriteBarrier {
        let barrier = next
        next = WriteBarrier()
        return next.insertEntries(of: barrier, withAnswers: false) { _ in }
    }

    /// Retries a failed write.
    func retry() { if hasChanged, !isRetired { queue() } }

    /// Fails the waiting responses after the server has shut down.
    func failPending() {
        isQueued = false
        let barrier = next
        next = WriteBarrier()
        let error =
            isInDoubt
            ? TrebuchetError(
                .unknownOutcome, "the server has shut down: the last change of actor '\(name)' may not be persisted")
            : TrebuchetError(
                .unavailable, "the server has shut down: the last change of actor '\(name)' was not persisted")
        barrier.fail(error)
        reuse(barrier)
    }

    private func scheduleRewrite() {
        for log in logs { log.scheduleRewrite() }
        for log in events { log.scheduleRewrite() }
        handoffState?.scheduleRewrite()
        alarms?.scheduleRewrite()
    }

    private func fail(_ barrier: WriteBarrier, _ code: TrebuchetError.Code, _ reason: String) {
        let error = TrebuchetError(
            code,
            "the state of actor '\(name)' could not be written: \(reason); its changes are in memory"
                + (code != .unknownOutcome
                    ? " only"
                    : ownership == nil
                        ? " and will be written again" : " and will be written again while its node owns it"))
        barrier.fail(error)
        reuse(barrier)
    }

    // MARK: The end

    /// Returns after all changes are written, with retries; later changes are not persisted. While the store fails, calls receive
    /// errors and this method waits, so no change is lost.
    ///
    /// - Parameter isUnused: True if the actor has no subscribers, including ones that may resume.
    /// - Returns: The error if the last change will never be written, because it cannot be encoded or is too large.
    package func retire(isUnused: Bool = false) async -> TrebuchetError? {
        await withCheckedContinuation { continuation in
            home.reactor.execute {
                if isUnused { for log in self.events where log.deleteIfEmpty() { self.didChange() } }
                self.retire { continuation.resume(returning: $0) }
            }
        }
    }

    /// Removes the log of an actor whose handoff state has ended. Called after `retire`.
    package func removeIfOver() async {
        guard let ownership, let partitions = writer.partitions,
            await home.reactor.perform({ self.handoffState?.isOver == true && !self.isRelinquished })
        else { return }
        // A failure leaves only a few bytes in the store.
        try? await partitions.remove(name, ownedUnder: ownership)
    }

    /// Ends the activation without further writes, because another node may own the actor. All waiting calls fail immediately.
    /// The calls of the running write fail too, because their acknowledgement would arrive after their streams have moved to
    /// the next owner.
    package func abandon() { home.reactor.run { self.relinquish() } }

    /// Indicates whether another node may own the actor, so that nothing more is written.
    package private(set) var isRelinquished = false
    package var hasBeenRelinquished: Bool { get async { await home.reactor.perform { self.isRelinquished } } }

    private func relinquish() {
        (isRetired, isRelinquished) = (true, true)
        release()
        hasChanged = false
        let barrier = [current, next]
        (current, next) = (WriteBarrier(), WriteBarrier())
        dropPendingResponses()
        for barrier in barrier {
            barrier.fail(lost)
            reuse(barrier)
        }
    }

    /// Indicates whether another node may publish the streams, so that this one must not. A running call may still change the
    /// states, and its versions would reuse the numbers of versions at the next owner.
    private var isElsewhere: Bool { isRelinquished || isRetired && ownership != nil }

    private func release() {
        guard !isElsewhere else { return }
        for log in logs { log.source?.persist(by: nil) }
        for log in events { log.source?.stopPersisting() }
    }

    private func retire(_ done: @escaping (TrebuchetError?) -> Void) {
        whenWritten { [self] error in
            // A value that cannot be encoded or is too large will never be written, and no response has confirmed it.
            guard error?.code != .unknownOutcome || isRetired else {
                // The writer retries without a request; this waits for it.
                home.reactor.schedule(after: StateWriter.retryInterval) { self.retire(done) }
                return
            }
            let wasRetired = isRetired
            isRetired = true
            release()
            done(wasRetired ? nil : error)
        }
    }
}
