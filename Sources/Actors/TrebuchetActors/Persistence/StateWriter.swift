internal import Platform
internal import Transports

/// Writes the persisted states of a reactor's actors. All changes of a turn, or those during the previous write, are written as
/// one batch.
///
/// `@unchecked Sendable`: accessed only on its reactor, except for constants.
package final class StateWriter: EndOfTurnTask, @unchecked Sendable {
    /// The time after which a failed write is retried, unless a call triggers a retry earlier.
    static let retryInterval = Duration.seconds(1)
    /// The size of snapshot slices in one write with other changes, in bytes.
    private static let slicesPerWrite = 1 << 20
    /// The maximum number of recorded responses that one write deletes.
    private static let deletionBatch = 1_000
    /// The maximum number of expired responses that wait for deletion; others stay in the store until compaction.
    package static let maximumOverdueWrites = 65_536
    /// The number of recorded responses of an earlier process that are listed at a time.
    private static let listPageSize = 100

    package let store: any StateStore
    let claim: StoreOwnership
    let disclosure: ErrorDisclosure
    /// The maximum size of one state in bytes.
    let stateSize: Int
    /// The maximum size of the retained events of one property in bytes.
    let eventBytes: Int
    /// The time for which responses are recorded, the same as in memory.
    private let responseLifetime: Duration
    private unowned let reactor: any EventLoop
    /// The settings of alarms; nil where actors have none. Set before actors are exposed.
    package var alarms: AlarmSettings?
    /// Set if the writes of each actor are separate.
    let partitions: (any PerActorStore)?
    private var changed: [PersistedStates] = []
    private var failed: [PersistedStates] = []
    /// The states whose changes are being written.
    private var writing: [PersistedStates] = []
    private var isWriting = false
    private var isAtEndOfTurn = false
    private var isAbandoned = false
    /// Set while a snapshot is encoded.
    private var isCopying = false
    /// The recorded responses in the order of their expiry; those before `firstExpiry` are deleted.
    private var expiries: [(key: StateKey, call: IdempotencyRecord?, time: UInt64)] = []
    private var firstExpiry = 0
    private var isDeletionScheduled = false
    /// Set while separate deletions run.
    private var isDeletingExpired = false
    /// Called for an actor whose changes the store rejects because another node may own it. On the reactor.
    package var didRelinquish: ((_ actor: String) -> Void)?
    private var idle: [() -> Void] = []
    /// The shard of its reactor. Set before actors are exposed.
    weak var shard: SystemShard?
    private var began: UInt64 = 0
    /// The error of the last write; nil if it succeeded.
    package private(set) var failure: String? {
        didSet { if (failure == nil) != (oldValue == nil) { didChangeHealth?(failure) } }
    }
    /// Called with the error of the first write that fails, and with nil after the next one that succeeds. On the reactor.
    package var didChangeHealth: ((_ failure: String?) -> Void)?
    /// Unused commit gates for further calls.
    private var spare: [CommitGate] = []
    private static let maximumSpare = 4
    /// The timer for the earliest deadline of waiting calls.
    private var deadline: (timer: LoopTimer, time: UInt64)?
    /// The minimum interval between timeouts: each visits all waiting calls, and clients must not trigger it at any rate.
    private static let minimumDeadlineInterval = Duration.milliseconds(5)
    private var nextDeadline: UInt64 = 0

    package init(
        _ store: any StateStore, _ claim: StoreOwnership, _ disclosure: ErrorDisclosure, stateSize: Int,
        eventBytes: Int, responseLifetime: Duration, reactor: any EventLoop
    ) {
        self.disclosure = disclosure
        self.store = store
        var inner = store
        while let wrapping = inner as? any WrappingStore { inner = wrapping.wrapped }
        partitions = inner as? any PerActorStore
        self.claim = claim
        self.stateSize = stateSize
        self.eventBytes = eventBytes
        self.responseLifetime = responseLifetime
        self.reactor = reactor
    }

    /// Schedules a write of these states at the end of the turn, or after the running write.
    func scheduleWrite(of states: PersistedStates) {
        guard !isAbandoned else { return states.failPending() }
        changed.append(states)
        schedule()
    }

    private func schedule() {
        guard !isWriting, !isAtEndOfTurn else { return }
        isAtEndOfTurn = true
        reactor.atEndOfTurn(self)
    }

    package func endOfTurn() {
        isAtEndOfTurn = false
        guard !isWriting else { return }
        var batch: [PersistedStates] = []
        var writes: [StateWrite] = []
        var parts: [[StateWrite]] = []
        var slices = Self.slicesPerWrite
        swap(&batch, &changed)
        batch = batch.filter { states in
            guard let own = states.beginWrite(slices: &slices) else { return false }
            if partitions != nil { parts.append(own) } else { writes += own }
            return true
        }
        if partitions == nil { writes += nextDeletions() } else { deleteExpiredSeparately() }
        guard !writes.isEmpty || !batch.isEmpty else { return notifyIdle() }
        isWriting = true
        began = MonotonicClock.now
        writing = batch
        let (store, reactor, owners, values) = (store, reactor, batch, writes)
        if partitions != nil { return write(batch, parts) }
        // On the reactor, so that a store that only passes the work on uses no other thread.
        Task.immediate(executorPreference: reactor.taskExecutor) {
            var failure: StateStoreError?
            do throws(StateStoreError) {
                try await store.write(values)
            } catch {
                failure = error
            }
            let error = failure
            reactor.execute { self.didWrite(owners, Array(repeating: error, count: owners.count)) }
        }
    }

    /// Writes the changes of each actor separately.
    private func write(_ batch: [PersistedStates], _ parts: [[StateWrite]]) {
        let (store, reactor) = (store, reactor)
        Task.immediate(executorPreference: reactor.taskExecutor) {
            var errors = [StateStoreError?](repeating: nil, count: parts.count)
            await withTaskGroup(of: (Int, StateStoreError?).self) { group in
                for (index, part) in parts.enumerated() where !part.isEmpty {
                    group.addTask {
                        do throws(StateStoreError) {
                            try await store.write(part)
                            return (index, nil)
                        } catch {
                            return (index, error)
                        }
                    }
                }
                for await (index, error) in group { errors[index] = error }
            }
            let outcomes = errors
            reactor.execute { self.didWrite(batch, outcomes) }
        }
    }

    private func didWrite(_ batch: [PersistedStates], _ errors: [StateStoreError?]) {
        isWriting = false
        writing = []
        reportWrite(batch.count, errors.lazy.compactMap { $0 }.first)
        var failed: [PersistedStates] = []
        for (states, error) in zip(batch, errors) {
            states.endWrite(error)
            if error != nil, !states.isRelinquished { failed.append(states) }
        }
        if isAbandoned {
            for states in failed { states.failPending() }
        } else if !failed.isEmpty {
            scheduleRetry(of: failed)
        }
        if changed.isEmpty { notifyIdle() } else { schedule() }
    }

    /// Counts a write and reports it to the event handlers.
    private func reportWrite(_ actors: Int, _ error: StateStoreError?) {
        failure = error.map { "\($0)" }
        guard let shard else { return }
        let duration = MonotonicClock.now &- began
        shard.counts.count(.storeWrites, duration: duration)
        if error != nil { shard.counts.count(.storeWritesFailed) }
        guard shard.events.isEnabled(for: .store) else { return }
        shard.events.emit(
            .storeWriteCompleted(actors: actors, duration: .nanoseconds(Int64(clamping: duration)), error: failure))
    }

    // MARK: Calls that wait

    /// Holds the response of a call until a write has ended or the call's deadline has passed.
    func deferResponse(
        _ call: ResponseAwaitingCommit, _ callID: UnsafeRawBufferPointer,
        _ outcome: Result<UnsafeRawBufferPointer, any Error>,
        in responses: inout CommitGate?
    ) {
        let answers = responses ?? spare.popLast() ?? CommitGate()
        responses = answers
        answers.append(call, callID, outcome)
        // Rarely true: most calls have the same time limit, so later calls have later deadlines.
        let time = max(call.deadline, nextDeadline)
        if time < deadline?.time ?? .max { watch(time) }
    }

    /// Keeps an empty commit gate for reuse.
    func reuse(_ answers: CommitGate) {
        if spare.count < Self.maximumSpare { spare.append(answers) }
    }

    private func watch(_ time: UInt64) {
        deadline?.timer.cancel()
        let now = reactor.now
        let wait = Duration.nanoseconds(Int64(clamping: time > now ? time - now : 0))
        deadline = (reactor.schedule(after: wait, for: self) { $0.timeOut() }, time)
    }

    private func timeOut() {
        deadline = nil
        let now = reactor.now
        nextDeadline = now &+ Self.minimumDeadlineInterval.nanoseconds
        var next = UInt64.max
        for states in changed + writing + failed { next = min(next, states.timeOut(at: now)) }
        if next != .max { next = max(next, nextDeadline) }
        if next < deadline?.time ?? .max { watch(next) }
    }

    /// Answers calls before the write that they wait for: their server does not wait any longer. On the reactor.
    ///
    /// - Parameter isAffected: which of those that answer calls.
    package func endCalls(_ error: TrebuchetError, of isAffected: (any CallResponder) -> Bool) {
        for states in changed + writing + failed {
            for responses in [states.current.calls, states.next.calls] {
                responses?.answerEntries(where: { isAffected($0.responder) }) { _ in error }
            }
        }
    }

    // MARK: Snapshots

    /// Starts a snapshot of a log, encoded on another thread, if its changes outweigh the last one. One at a time, because its
    /// memory is not counted.
    func copyIfSnapshotDue(_ log: PersistedLog, of states: PersistedStates) {
        guard !isCopying, !isAbandoned, let (copy, slices) = log.copyIfSnapshotDue() else { return }
        isCopying = true
        let (coder, reactor, stateSize) = (states.home.makeCoder(), reactor, stateSize)
        let bound = LoopBound((log: log, slices: slices), on: reactor)
        Task.detached(priority: .utility) {
            let bytes = try? copy(coder)
            reactor.execute {
                self.isCopying = false
                if bound.value.log.storeSnapshot(bytes, for: bound.value.slices, stateSize: stateSize) {
                    states.writeSlices()
                }
            }
        }
    }

    // MARK: Expired recorded responses

    /// Schedules the deletion of a recorded response.
    ///
    /// - Parameter call: the record whose response counts until then; nil for one of an earlier process.
    func scheduleDeletion(_ key: StateKey, _ call: IdempotencyRecord?) {
        let now = reactor.now
        expiries.append((key, call, now &+ responseLifetime.nanoseconds))
        if partitions != nil {
            // If the store deletes more slowly than responses expire, they remain in the store rather than in this server's
            // memory.
            for _ in 0..<Self.deletionBatch {
                guard expiryCount > Self.maximumOverdueWrites,
                    expiries[firstExpiry + Self.maximumOverdueWrites].time <= now
                else {
                    break
                }
                _ = removeFirstExpired()
            }
        }
        scheduleExpiry()
    }

    /// Removes the first entry and returns its key.
    private func removeFirstExpired() -> StateKey {
        let key = expiries[firstExpiry].key
        expiries[firstExpiry].call = nil
        firstExpiry += 1
        // Removes half of the array at a time, so that each element is moved once on average.
        if firstExpiry * 2 > expiries.count {
            expiries.removeFirst(firstExpiry)
            firstExpiry = 0
        }
        return key
    }

    /// Schedules the deletion of responses recorded by an earlier process, after reconnecting clients have had time to repeat
    /// their calls.
    package func scheduleDeletionOfEarlierResponses() async { await scheduleDeletionOfEarlierResponses(after: nil) }

    private func scheduleDeletionOfEarlierResponses(after last: String?) async {
        var last = last
        do throws(StateStoreError) {
            while true {
                let entries = try await store.list(
                    IdempotencyNamespace.name, prefix: "", after: last, limit: Self.listPageSize)
                let keys = entries.map(\.key)
                guard let end = keys.last else { return }
                last = end.name
                reactor.execute { for key in keys { self.scheduleDeletion(key, nil) } }
            }
        } catch {
            let position = last
            reactor.execute {
                self.reactor.schedule(after: Self.retryInterval) { [weak self] in
                    guard let self, !self.isAbandoned else { return }
                    Task { await self.scheduleDeletionOfEarlierResponses(after: position) }
                }
            }
        }
    }

    /// Returns the current ownership number of an actor; nil if no other node can own it.
    func ownership(of actor: String) -> UInt64? { partitions?.ownership(of: actor) }

    /// The number of recorded responses that wait for expiry or deletion. On the reactor.
    package var expiryCount: Int { expiries.count - firstExpiry }

    /// Deletes expired responses with separate writes, one for each actor. No call waits for them: a failure only leaves an
    /// unused response in the store.
    private func deleteExpiredSeparately() {
        guard !isDeletingExpired else { return }
        let writes = nextDeletions()
        guard !writes.isEmpty else { return }
        isDeletingExpired = true
        let (store, reactor) = (store, reactor)
        let parts = Dictionary(grouping: writes) { $0.key.partition.map { ByteText($0) } }.values
        Task {
            await withTaskGroup(of: Void.self) { group in
                for part in parts { group.addTask { try? await store.write(part) } }
            }
            reactor.execute {
                self.isDeletingExpired = false
                self.scheduleExpiry()
            }
        }
    }

    private func nextDeletions() -> [StateWrite] {
        var writes: [StateWrite] = []
        let now = reactor.now
        while writes.count < Self.deletionBatch, firstExpiry < expiries.count, expiries[firstExpiry].time <= now {
            writes.append(.delete(removeFirstExpired()))
        }
        scheduleExpiry()
        return writes
    }

    private func scheduleExpiry() {
        guard !isDeletionScheduled, !isDeletingExpired, firstExpiry < expiries.count else { return }
        isDeletionScheduled = true
        let (now, time) = (reactor.now, expiries[firstExpiry].time)
        reactor.schedule(after: .nanoseconds(Int64(clamping: time > now ? time - now : 0))) { [weak self] in
            guard let self else { return }
            self.isDeletionScheduled = false
            if !self.isAbandoned { self.schedule() }
        }
    }

    private func scheduleRetry(of batch: [PersistedStates]) {
        if failed.isEmpty {
            reactor.schedule(after: Self.retryInterval) {
                let failed = self.failed
                self.failed = []
                for states in failed {
                    states.isToBeRetried = false
                    states.retry()
                }
            }
        }
        for states in batch where !states.isToBeRetried {
            states.isToBeRetried = true
            failed.append(states)
        }
    }

    // MARK: The end

    /// Stops after the running write, because the store may belong to another server from now on.
    package func abandon() {
        isAbandoned = true
        let waiting = changed + failed
        changed = []
        failed = []
        for states in waiting { states.failPending() }
    }

    /// Returns after all pending changes are written, except those that have failed.
    package func flush() async {
        await withCheckedContinuation { continuation in
            reactor.execute {
                self.idle.append { continuation.resume() }
                if !self.isWriting, self.changed.isEmpty { self.notifyIdle() }
            }
        }
    }

    private func notifyIdle() {
        let waiting = idle
        idle = []
        for done in waiting { done() }
    }
}
