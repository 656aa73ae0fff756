internal import Platform
internal import Transports

/// Writes the persisted states of a reactor's actors: all that changed in a turn, or while the write before was under way,
/// goes to the store in one batch.
///
/// `@unchecked Sendable`: touched on its reactor alone, but for what is constant.
package final class StateWriter: EndOfTurn, @unchecked Sendable {
    /// How long after a failed write it is tried again when no call does so earlier.
    static let retryInterval = Duration.seconds(1)
    /// Bytes of snapshots that are written beside what has changed.
    private static let slicesPerWrite = 1 << 20
    /// Answers that go with one write.
    private static let forgottenAtOnce = 1_000
    /// Answers whose time is over that may wait to be let go of apart: more than that stay where they are kept, until that is folded.
    package static let mostOverdue = 65_536
    /// Answers of an earlier process that are in memory at once.
    private static let listedAtOnce = 100

    package let store: any StateStore
    let claim: StoreClaim
    let disclosure: ErrorDisclosure
    /// Bytes that one state may have.
    let stateSize: Int
    /// Bytes that the events may have that are kept of one property.
    let eventBytes: Int
    /// How long answers of calls are kept, as in memory.
    private let answerTime: Duration
    private unowned let reactor: any EventLoop
    /// Set where what each actor writes is a write of its own.
    let partitions: (any PartitionedStore)?
    private var changed: [PersistedStates] = []
    private var failed: [PersistedStates] = []
    /// Those whose changes are being written.
    private var writing: [PersistedStates] = []
    private var isWriting = false
    private var isAtEndOfTurn = false
    private var isAbandoned = false
    /// Whether a snapshot is being encoded.
    private var isCopying = false
    /// Answers of calls, in the order of their times; those before `firstExpiry` are gone.
    private var expiries: [(key: StateKey, call: KeptCall?, time: UInt64)] = []
    private var firstExpiry = 0
    private var willForget = false
    /// Whether some are just being let go of, apart from other writes.
    private var isForgetting = false
    /// Told of actors whose changes the store takes no more since another node may own them. On the reactor.
    package var didGiveUp: ((_ actor: String) -> Void)?
    private var idle: [() -> Void] = []
    /// Of its reactor. Set before actors are exposed.
    weak var shard: SystemShard?
    private var began: UInt64 = 0
    /// Why the last write has failed; nil when it has not.
    package private(set) var failure: String?
    /// For the next calls that wait.
    private var spare: [HeldAnswers] = []
    private static let mostSpare = 4
    /// Fires when the time of the first call that waits is over.
    private var deadline: (timer: LoopTimer, time: UInt64)?
    /// All that wait are looked at each time: no client is to have that done as often as it likes.
    private static let leastBetweenDeadlines = Duration.milliseconds(5)
    private var nextDeadline: UInt64 = 0

    package init(
        _ store: any StateStore, _ claim: StoreClaim, _ disclosure: ErrorDisclosure, stateSize: Int,
        eventBytes: Int, answerTime: Duration, reactor: any EventLoop
    ) {
        self.disclosure = disclosure
        self.store = store
        var inner = store
        while let wrapping = inner as? any WrappingStore { inner = wrapping.wrapped }
        partitions = inner as? any PartitionedStore
        self.claim = claim
        self.stateSize = stateSize
        self.eventBytes = eventBytes
        self.answerTime = answerTime
        self.reactor = reactor
    }

    /// Writes these states at the end of the turn, or after the write that is under way.
    func add(_ states: PersistedStates) {
        guard !isAbandoned else { return states.giveUp() }
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
        if partitions == nil { writes += forgotten() } else { forgetApart() }
        guard !writes.isEmpty || !batch.isEmpty else { return tellIdle() }
        isWriting = true
        began = MonotonicClock.now
        writing = batch
        let (store, reactor, owners, values) = (store, reactor, batch, writes)
        if partitions != nil { return write(batch, parts) }
        // On the reactor, so that a store which only hands the work on costs no other thread.
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

    /// The same with a write for each actor.
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
        note(batch.count, errors.lazy.compactMap { $0 }.first)
        var failed: [PersistedStates] = []
        for (states, error) in zip(batch, errors) {
            states.endWrite(error)
            if error != nil, !states.isGivenUp { failed.append(states) }
        }
        if isAbandoned { for states in failed { states.giveUp() } } else if !failed.isEmpty { tryLater(failed) }
        if changed.isEmpty { tellIdle() } else { schedule() }
    }

    /// Counts a write, and tells who listens.
    private func note(_ actors: Int, _ error: StateStoreError?) {
        failure = error.map { "\($0)" }
        guard let shard else { return }
        let took = MonotonicClock.now &- began
        shard.counts.count(.storeWrites, took: took)
        if error != nil { shard.counts.count(.storeWritesFailed) }
        guard shard.events.wants(.store) else { return }
        shard.events.tell(
            .stored(actors: actors, took: .nanoseconds(Int64(clamping: took)), error: failure))
    }

    // MARK: Calls that wait

    /// Holds the answer of a call until a write has ended, or its time is over.
    func hold(
        _ call: HeldCall, _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>,
        in held: inout HeldAnswers?
    ) {
        let answers = held ?? spare.popLast() ?? HeldAnswers()
        held = answers
        answers.append(call, callID, outcome)
        // As good as never: most calls have the same time, so that a later one ends later.
        let time = max(call.deadline, nextDeadline)
        if time < deadline?.time ?? .max { watch(time) }
    }

    /// Takes back what has nothing in it any more.
    func reuse(_ answers: HeldAnswers) {
        if spare.count < Self.mostSpare { spare.append(answers) }
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
        nextDeadline = now &+ Self.leastBetweenDeadlines.nanoseconds
        var next = UInt64.max
        for states in changed + writing + failed { next = min(next, states.timeOut(at: now)) }
        if next != .max { next = max(next, nextDeadline) }
        if next < deadline?.time ?? .max { watch(next) }
    }

    /// Answers calls before the write that they wait for: their server does not wait any longer. On the reactor.
    ///
    /// - Parameter isMeant: which of those that answer calls.
    package func endCalls(_ error: TrebuchetError, of isMeant: (any CallAnswerer) -> Bool) {
        for states in changed + writing + failed {
            for held in [states.current.calls, states.next.calls] {
                held?.end(where: { isMeant($0.answerer) }) { _ in error }
            }
        }
    }

    // MARK: Snapshots

    /// Begins a new snapshot of a log, encoded elsewhere, when its changes outweigh the last one. One at a time: what it takes in
    /// memory is not counted.
    func copyIfOutweighed(_ log: PersistedLog, of states: PersistedStates) {
        guard !isCopying, !isAbandoned, let (copy, slices) = log.copyIfOutweighed() else { return }
        isCopying = true
        let (coder, reactor, stateSize) = (states.home.newCoder(writing: .milliseconds), reactor, stateSize)
        Task.detached(priority: .utility) {
            let bytes = try? copy(coder)
            reactor.execute {
                self.isCopying = false
                if log.take(bytes, for: slices, stateSize: stateSize) { states.writeSlices() }
            }
        }
    }

    // MARK: Answers that were kept long enough

    /// Lets go of the answer of a call when its time is over.
    ///
    /// - Parameter call: whose answer counts until then; nil for one of an earlier process.
    func forget(_ key: StateKey, _ call: KeptCall?) {
        let now = reactor.now
        expiries.append((key, call, now &+ answerTime.nanoseconds))
        if partitions != nil {
            // A store that takes them slower than they come has more to do, not this server more to keep.
            for _ in 0..<Self.forgottenAtOnce {
                guard expiryCount > Self.mostOverdue, expiries[firstExpiry + Self.mostOverdue].time <= now else {
                    break
                }
                _ = takeExpired()
            }
        }
        forgetLater()
    }

    /// The first one is not kept any more.
    private func takeExpired() -> StateKey {
        let key = expiries[firstExpiry].key
        expiries[firstExpiry].call = nil
        firstExpiry += 1
        // Half of it at a time, so that each is moved once on average.
        if firstExpiry * 2 > expiries.count {
            expiries.removeFirst(firstExpiry)
            firstExpiry = 0
        }
        return key
    }

    /// Lets go of the answers that an earlier process has left, when a client that comes back has had time to ask.
    package func forgetEarlierCalls() async { await forgetEarlierCalls(after: nil) }

    private func forgetEarlierCalls(after last: String?) async {
        var last = last
        do throws(StateStoreError) {
            while true {
                let entries = try await store.list(
                    CallNamespace.name, prefix: "", after: last, limit: Self.listedAtOnce)
                let keys = entries.map(\.key)
                guard let end = keys.last else { return }
                last = end.name
                reactor.execute { for key in keys { self.forget(key, nil) } }
            }
        } catch {
            let place = last
            reactor.execute {
                self.reactor.schedule(after: Self.retryInterval) { [weak self] in
                    guard let self, !self.isAbandoned else { return }
                    Task { await self.forgetEarlierCalls(after: place) }
                }
            }
        }
    }

    /// What an actor is owned under now; nil where nobody else may own it.
    func ownership(of actor: String) -> UInt64? { partitions?.ownership(of: actor) }

    /// How many answers are kept until their time is over, or are just being let go of. On the reactor.
    package var expiryCount: Int { expiries.count - firstExpiry }

    /// Where each actor has a write of its own, nobody waits for what is let go of: a failure leaves an answer that is not asked for. What
    /// goes of one actor is one write.
    private func forgetApart() {
        guard !isForgetting else { return }
        let writes = forgotten()
        guard !writes.isEmpty else { return }
        isForgetting = true
        let (store, reactor) = (store, reactor)
        let parts = Dictionary(grouping: writes) { $0.key.partition.map { ByteText($0) } }.values
        Task {
            await withTaskGroup(of: Void.self) { group in
                for part in parts { group.addTask { try? await store.write(part) } }
            }
            reactor.execute {
                self.isForgetting = false
                self.forgetLater()
            }
        }
    }

    private func forgotten() -> [StateWrite] {
        var writes: [StateWrite] = []
        let now = reactor.now
        while writes.count < Self.forgottenAtOnce, firstExpiry < expiries.count, expiries[firstExpiry].time <= now {
            writes.append(.delete(takeExpired()))
        }
        forgetLater()
        return writes
    }

    private func forgetLater() {
        guard !willForget, !isForgetting, firstExpiry < expiries.count else { return }
        willForget = true
        let (now, time) = (reactor.now, expiries[firstExpiry].time)
        reactor.schedule(after: .nanoseconds(Int64(clamping: time > now ? time - now : 0))) { [weak self] in
            guard let self else { return }
            self.willForget = false
            if !self.isAbandoned { self.schedule() }
        }
    }

    private func tryLater(_ batch: [PersistedStates]) {
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

    /// Writes nothing more than what is being written: the store may be another server's from then on.
    package func abandon() {
        isAbandoned = true
        let waiting = changed + failed
        changed = []
        failed = []
        for states in waiting { states.giveUp() }
    }

    /// Returns when nothing waits to be written, but for what could not be.
    package func flush() async {
        await withCheckedContinuation { continuation in
            reactor.execute {
                self.idle.append { continuation.resume() }
                if !self.isWriting, self.changed.isEmpty { self.tellIdle() }
            }
        }
    }

    private func tellIdle() {
        let waiting = idle
        idle = []
        for done in waiting { done() }
    }
}
