internal import Transports

/// The persisted states and events of one exposed actor: nothing that may show a change, be it an answer or an update of a
/// stream, leaves before the change is written, and no event before it is.
///
/// Changes are gathered by the reactor's `StateWriter`. What may show them is held in one of two places: `next` waits for a
/// write that has not begun, `current` for the one under way. When a write fails the states count as changed until a later
/// write succeeds. Its answers are errors where the store has refused it. Where the store is out of reach they wait for the
/// next write, which is bounded by their deadlines and by the life of the activation.
///
/// `@unchecked Sendable`: touched on the reactor of `home` alone, but for what is constant.
package final class PersistedStates: StateKeeper, @unchecked Sendable {
    typealias Answer = AwaitedWrite.Answer

    /// The name that the actor is exposed under.
    package let name: String
    let home: SystemShard
    private let writer: StateWriter
    /// What the actor was owned under when it was loaded; nil where nobody else may own it.
    private let ownership: UInt64?
    /// Of owners before; written before anybody else has it.
    package var earlier = EarlierCalls()
    private var logs: [PersistedLog] = []
    private var events: [PersistedEvents] = []
    /// Set for an actor that notes what its next owner is to know.
    var notes: ActorNotes?
    private(set) var next = AwaitedWrite()
    private(set) var current = AwaitedWrite()
    /// Whether a state has changed since the last write began, or that write has failed.
    private var hasChanged = false
    /// Whether the last write failed. The store may have its changes.
    private var isInDoubt = false
    private var isWriting = false
    private var isQueued = false
    private var isRetired = false
    /// Whether its writer will try again what could not be written.
    var isToBeRetried = false
    /// Why an event was not sent, until the next call is answered: the one that wanted to, unless it takes its time.
    private var refusal: TrebuchetError?
    /// Calls under way whose answers are to outlast the process.
    private var calls: [ObjectIdentifier: KeptCall] = [:]
    /// Answers of such calls that wait for a write, and those that are being written.
    private var answers: [(call: KeptCall, write: StateWrite)] = []
    private var currentAnswers: [(call: KeptCall, write: StateWrite)] = []

    init(name: String, home: SystemShard, writer: StateWriter, ownership: UInt64? = nil) {
        self.name = name
        self.home = home
        self.writer = writer
        self.ownership = ownership
    }

    /// Takes charge of a state that has just been loaded, or of events.
    func add(_ log: PersistedLog) { logs.append(log) }
    func add(_ events: PersistedEvents) { self.events.append(events) }

    var eventBytes: Int { writer.eventBytes }

    // MARK: Changes, and what shows them

    func didChange() {
        guard !isElsewhere else { return }
        hasChanged = true
        queue()
    }

    func didRefuse(_ error: TrebuchetError) { if !isElsewhere { refusal = error } }

    var isAtRest: Bool { !hasChanged && !isWriting }
    var hasSuccessors: Bool { ownership != nil }

    private func queue() {
        guard !isQueued else { return }
        isQueued = true
        writer.add(self)
    }

    /// Runs `answer` when all changes up to now are written: at once when they are.
    func whenWritten(_ answer: @escaping Answer) {
        if isRetired { return answer(lost) }
        if let refused = refusal {
            refusal = nil
            return whenWritten { answer($0 ?? refused) }
        }
        if hasChanged {
            next.add(answer)
            // After a failure this call is the reason to try again.
            queue()
        } else if isWriting {
            current.add(answer)
        } else {
            answer(nil)
        }
    }

    /// Answers a call that ran in place when all changes up to now are written: at once when they are. The bytes need not be
    /// valid longer than this takes.
    package func whenWritten(
        _ call: HeldCall, _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>
    ) {
        var outcome = outcome
        if isRetired {
            outcome = .failure(lost)
        } else if let refused = refusal {
            refusal = nil
            outcome = .failure(refused)
        }
        if isRetired || isAtRest { return call.answerer.answer(callID, outcome, of: call) }
        if hasChanged {
            writer.hold(call, callID, outcome, in: &next.calls)
            // After a failure this call is the reason to try again.
            queue()
        } else {
            writer.hold(call, callID, outcome, in: &current.calls)
        }
    }

    /// Answers calls whose time is over; when that of the next one is.
    func timeOut(at now: UInt64) -> UInt64 {
        min(current.calls?.timeOut(at: now) ?? .max, next.calls?.timeOut(at: now) ?? .max)
    }

    /// Runs `update` when all changes up to now are written.
    ///
    /// - Parameter isWanted: whether anybody would still see it; streams may come and go while a store takes its time. Nil for what
    ///   was captured with the changes: after a failure it is dropped, and comes with those of the next write.
    func show(while isWanted: (() -> Bool)?, _ update: @escaping () -> Void) {
        if isElsewhere { return }
        if hasChanged {
            next.add(update, while: isWanted)
        } else if isWriting {
            current.add(update, while: isWanted)
        } else {
            update()
        }
    }

    // MARK: Calls that are known after the end of the process

    /// Answers that may wait for a store that fails: as many as one write takes easily.
    private static let mostAnswers = 16_384

    /// A call begins: it is noted with whatever is written until it ends, which may be its doing.
    ///
    /// - Returns: why it may not: what was answered before has not been written for so long that there is no room for more.
    func begin(_ call: KeptCall) -> TrebuchetError? {
        guard answers.count + currentAnswers.count + calls.count < Self.mostAnswers else {
            return TrebuchetError(
                .unavailable,
                "\(Self.mostAnswers) answers of @Idempotent calls of actor '\(name)' wait for the store already; try again later"
            )
        }
        calls[ObjectIdentifier(call)] = call
        return nil
    }

    /// A call has ended: its answer goes with the last change; nowhere when nothing was written or is to be.
    func end(_ call: KeptCall, _ answer: KeptAnswer) {
        calls[ObjectIdentifier(call)] = nil
        if isRetired, call.isNoted { writer.forget(call.key, call) }
        guard hasChanged || call.isNoted, !isRetired else { return }
        answers.append((call, call.answered(refusal.map { .failure($0) } ?? answer)))
        hasChanged = true
        queue()
    }

    private func noteCalls() -> [StateWrite] {
        currentAnswers = answers
        answers = []
        let begun = calls.values.filter { !$0.isNoted }
        for call in begun { call.isNoted = true }
        return begun.map(\.begun) + currentAnswers.map(\.write)
    }

    /// What they say was done is in memory alone. Of some the store knows that they began.
    private func dropAnswers() {
        for (call, _) in answers where call.isNoted { writer.forget(call.key, call) }
        answers = []
    }

    /// The error of calls that this activation cannot answer any more.
    private var lost: TrebuchetError {
        guard ownership == nil else {
            return .lostActivation(
                "this node lost actor '\(name)' before the store acknowledged the change: the change may have been made"
            )
        }
        return TrebuchetError(
            .unknownOutcome, "actor '\(name)' was taken out of reach while the call ran: its changes are not kept")
    }

    // MARK: Writing

    /// What is to be written now, or nil when that is nothing. Those who wait get the error when a state has no form.
    ///
    /// - Parameter slices: bytes of snapshots that may be written beside; what is taken of them is taken off.
    func beginWrite(slices: inout Int) -> [StateWrite]? {
        isQueued = false
        if isGivenUp { return nil }
        guard hasChanged else { return nextSlices(&slices).map(owned) }
        var writes: [StateWrite] = []
        do {
            for log in logs { writes += try log.changes(stateSize: writer.stateSize, of: name) }
            for log in events { writes += try log.changes(of: name) }
        } catch {
            let held = takeNext()
            dropAnswers()
            writeAgain()
            fail(held, .internal, describe(error))
            return nil
        }
        if let notes { writes += notes.changes() }
        hasChanged = false
        isWriting = true
        current = next
        next = AwaitedWrite()
        if notes?.hasMore == true { didChange() }
        for log in logs { writer.copyIfOutweighed(log, of: self) }
        return owned(writes + noteCalls() + (nextSlices(&slices) ?? []))
    }

    private func owned(_ writes: [StateWrite]) -> [StateWrite] {
        guard let ownership else { return writes }
        return writes.map { write in
            var write = write
            write.ownership = ownership
            return write
        }
    }

    /// What can be written of snapshots now; nil when that is nothing.
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

    /// A snapshot is ready to be written in slices.
    func writeSlices() { if !isRetired { queue() } }

    func endWrite(_ error: StateStoreError?) {
        let held = current
        current = AwaitedWrite()
        isWriting = false
        let answers = currentAnswers
        currentAnswers = []
        guard let error else {
            isInDoubt = false
            for (call, _) in answers { writer.forget(call.key, call) }
            for log in logs { log.didWrite() }
            notes?.didWrite()
            if logs.contains(where: \.hasSlices) { writeSlices() }
            held.succeed()
            return reuse(held)
        }
        self.answers = answers + self.answers
        if isGivenUp || ownership != nil && error.code == .conflict {
            // Another node owns the actor, and continues from the log.
            let isFirst = !isGivenUp
            (isRetired, isGivenUp, current) = (true, true, held)
            // Before the answers: a repeat of a call must not run here.
            if isFirst { writer.didGiveUp?(name) }
            return giveUpForGood()
        }
        hasChanged = true
        isInDoubt = true
        for call in calls.values { call.isNoted = false }
        writeAgain()
        // A later write may acknowledge the change: answers wait for it, within a limit.
        let waits = error.code == .unavailable && held.count + next.count <= Self.mostAnswers
        let left = next.take(held, withAnswers: waits) { writer.reuse($0) }
        if !waits { fail(left, .unknownOutcome, error.message) }
    }

    private func reuse(_ held: AwaitedWrite) {
        if let calls = held.calls { writer.reuse(calls) }
    }

    /// The answers that wait for the next write. Updates that are still wanted wait on.
    private func takeNext() -> AwaitedWrite {
        let held = next
        next = AwaitedWrite()
        return next.take(held, withAnswers: false) { _ in }
    }

    /// Tries to write what could not be written before.
    func retry() { if hasChanged, !isRetired { queue() } }

    /// Nobody writes them any more: the server has shut down.
    func giveUp() {
        isQueued = false
        let held = next
        next = AwaitedWrite()
        let error =
            isInDoubt
            ? TrebuchetError(
                .unknownOutcome, "the server has shut down: the last change of actor '\(name)' may not be kept")
            : TrebuchetError(
                .unavailable, "the server has shut down: the last change of actor '\(name)' is in memory and not kept")
        held.fail(error)
        reuse(held)
    }

    private func writeAgain() {
        for log in logs { log.writeAgain() }
        for log in events { log.writeAgain() }
        notes?.writeAgain()
    }

    private func fail(_ held: AwaitedWrite, _ code: TrebuchetError.Code, _ reason: String) {
        let error = TrebuchetError(
            code,
            "the state of actor '\(name)' could not be written: \(reason); its changes are in memory"
                + (code != .unknownOutcome
                    ? " alone"
                    : ownership == nil
                        ? " and will be tried again" : " and will be tried again as long as its node owns it"))
        held.fail(error)
        reuse(held)
    }

    // MARK: The end

    /// Returns when all that has changed is written, however often that has to be tried, and from then on changes are not
    /// kept. While the store fails calls get errors and this waits: a change is let go of by nobody.
    ///
    /// - Parameter isUnused: whether nobody observes the actor, or may come back to it.
    /// - Returns: why the last change is not written and never will be: it has no form, or is too large.
    package func retire(isUnused: Bool = false) async -> TrebuchetError? {
        await withCheckedContinuation { continuation in
            home.reactor.execute {
                if isUnused { for log in self.events where log.giveUpIfEmpty() { self.didChange() } }
                self.retire { continuation.resume(returning: $0) }
            }
        }
    }

    /// When it has retired: of an actor that is over nothing stays.
    package func removeIfOver() async {
        guard let ownership, let partitions = writer.partitions,
            await home.reactor.perform({ self.notes?.isOver == true && !self.isGivenUp })
        else { return }
        // What fails leaves a few bytes there.
        try? await partitions.remove(name, ownedUnder: ownership)
    }

    /// Ends the activation, as another node may own the actor: it writes nothing more. All waiting calls fail at once. So do those of the
    /// write under way, whose acknowledgement would come after their streams have moved to the next owner.
    package func abandon() { home.reactor.run { self.giveUpForGood() } }

    /// Whether another node may own what it has; then nothing is written any more.
    package private(set) var isGivenUp = false
    package var hasBeenGivenUp: Bool { get async { await home.reactor.perform { self.isGivenUp } } }

    private func giveUpForGood() {
        (isRetired, isGivenUp) = (true, true)
        letGo()
        hasChanged = false
        let held = [current, next]
        (current, next) = (AwaitedWrite(), AwaitedWrite())
        dropAnswers()
        for held in held {
            held.fail(lost)
            reuse(held)
        }
    }

    /// Whether another node may show what it has: from then on nothing is shown here. A call that still runs may change it all the same,
    /// and its versions would have the numbers of those that are made there.
    private var isElsewhere: Bool { isGivenUp || isRetired && ownership != nil }

    private func letGo() {
        guard !isElsewhere else { return }
        for log in logs { log.source?.persist(by: nil) }
        for log in events { log.source?.stopKeeping() }
    }

    private func retire(_ done: @escaping (TrebuchetError?) -> Void) {
        whenWritten { [self] error in
            // What has no form, or is too large, will not be written later either, and nobody was told that it is kept.
            guard error?.code != .unknownOutcome || isRetired else {
                // The writer tries again by itself; this waits for that as well.
                home.reactor.schedule(after: StateWriter.retryInterval) { self.retire(done) }
                return
            }
            let wasRetired = isRetired
            isRetired = true
            letGo()
            done(wasRetired ? nil : error)
        }
    }
}
