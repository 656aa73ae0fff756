internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// The calls of one connection to actors of another reactor. There they run in order, for a time slice of each turn, like calls of
/// a connection of that reactor: long calls delay others by a time slice only.
///
/// `@unchecked Sendable`: isolated to `reactor`, except `unread`, which is atomic, and the properties of the connection's reactor.
final class CrossReactorCallQueue: Resumable, @unchecked Sendable {
    /// Nanoseconds of a turn.
    private static let shareOfTurn: UInt64 = 100_000
    /// The maximum number of response bytes on their way to the client; with more, the next calls wait.
    static let maximumUnreadBytes = 1 << 20

    /// The size in bytes above which a call runs as a long step: decoding its arguments may take milliseconds.
    private static let largeCall = 16 << 10

    private enum Waiting {
        case call(bytes: Int, () -> Void)
        case batch(CrossReactorCallBatch)

        var isLarge: Bool {
            switch self {
            case .call(let bytes, _): bytes > CrossReactorCallQueue.largeCall
            // A batch of several calls has small ones, which end its part of a turn one by one.
            case .batch(let batch): batch.count == 1 && batch.byteCount > CrossReactorCallQueue.largeCall
            }
        }
    }

    private enum Schedule {
        case none, resume, longStep
    }

    let reactor: Reactor
    private var waiting = WorkQueue<Waiting>()
    /// The first batch, when part of it has run.
    private var begun: CrossReactorCallBatch?
    private var scheduled = Schedule.none
    /// Starts at 1: the first calls may be long.
    private var stride = 1
    /// The number of all jobs of the reactor at the end of the last slice that added some.
    private var lastJob: UInt64 = 0
    private let unread = Atomic<Int>(0)
    /// The part of `unread` that has arrived at the connection. Accessed on the connection's reactor, like the following properties.
    var unreadCount = 0
    /// The batch that accepts further calls.
    private var open: CrossReactorCallBatch?
    /// The batches that have not returned, and `open`.
    private var inFlight: [CrossReactorCallBatch] = []
    /// Fires at `watchedUntil`, when the deadline of one of the calls may have passed.
    private(set) var timer: LoopTimer?
    private(set) var watchedUntil = UInt64.max

    init(on reactor: Reactor) { self.reactor = reactor }

    /// Runs `call`, whose message has this size, after earlier ones. May be called on any thread.
    func enqueue(bytes: Int = 0, _ call: @escaping @Sendable () -> Void) {
        reactor.execute {
            self.waiting.append(.call(bytes: bytes, call))
            self.scheduleResume()
        }
    }

    /// Runs a batch after earlier calls. Call on the reactor.
    func enqueue(_ batch: CrossReactorCallBatch) {
        waiting.append(.batch(batch))
        scheduleResume()
    }

    private var hasWaiting: Bool { begun != nil || !waiting.isEmpty }

    private var room: Int { Self.maximumUnreadBytes - unread.load(ordering: .relaxed) }

    private func scheduleResume() {
        guard scheduled == .none, hasWaiting, room > 0 else { return }
        if isNextLarge {
            scheduled = .longStep
            reactor.scheduleLongStep(self)
        } else {
            scheduled = .resume
            reactor.scheduleResume(self)
        }
    }

    private var isNextLarge: Bool { begun == nil && waiting.peek()?.isLarge == true }

    func resume() {
        var isLongStep = scheduled == .longStep
        scheduled = .none
        if reactor.mustRunJobs(upTo: lastJob) { return scheduleResume() }
        var slice = reactor.connectionSlice(budget: Self.shareOfTurn, stride: stride)
        let jobs = reactor.jobCount
        while hasWaiting, room > 0, isLongStep || !isNextLarge {
            isLongStep = false
            if let batch = begun ?? nextBatch() {
                begun = batch.run(&slice, room: room) ? nil : batch
                if begun != nil { break }
            }
            if slice.isCheckDue() {
                if slice.isUsedUp(lastClockReading: &reactor.lastClockReading) || reactor.hasAddedJobs(to: jobs) {
                    break
                }
            }
        }
        stride = slice.stride
        let count = reactor.jobCount
        if count > jobs { lastJob = count }
        scheduleResume()
    }

    /// Returns the next batch, or runs a separate call.
    private func nextBatch() -> CrossReactorCallBatch? {
        switch waiting.removeFirst() {
        case .batch(let batch): return batch
        case .call(_, let call):
            call()
            return nil
        }
    }

    /// Notes that a response of this size is on its way.
    func addUnreadBytes(_ bytes: Int) { unread.add(bytes, ordering: .relaxed) }

    /// Notes that the client reads the arrived responses. Call on the connection's reactor.
    func markResponsesRead() {
        guard unreadCount > 0 else { return }
        let rest = unread.subtract(unreadCount, ordering: .relaxed).newValue
        if rest < Self.maximumUnreadBytes, rest + unreadCount >= Self.maximumUnreadBytes {
            reactor.execute { self.scheduleResume() }
        }
        unreadCount = 0
    }

    // MARK: Batches, on the connection's reactor

    /// Returns the batch that accepts a further call of a caller; nil if a new one is needed.
    func openBatch(
        for bytes: Int, _ hosting: ClientActorHostConnection?, _ caller: Caller?
    ) -> CrossReactorCallBatch? {
        guard let open, open.hosting === hosting, open.hasRoom(for: bytes), Caller.areIdentical(open.caller, caller)
        else { return nil }
        return open
    }

    func addBatch(_ batch: CrossReactorCallBatch) {
        open = batch
        inFlight.append(batch)
    }

    /// Notes that a batch accepts no further calls.
    func closeBatch(_ batch: CrossReactorCallBatch) { if open === batch { open = nil } }

    /// Removes a batch whose calls have returned.
    func removeBatch(_ batch: CrossReactorCallBatch) { inFlight.removeAll { $0 === batch } }

    /// Withdraws the call with this callID; nil when no call on its way has it.
    func withdraw(_ callID: UnsafeRawBufferPointer) -> CrossReactorCallBatch.Withdrawn? {
        for batch in inFlight {
            var isFound = false
            let calls = batch.withdraw { call in
                guard !isFound, batch.callID(call).elementsEqual(callID) else { return false }
                isFound = true
                return true
            }
            if let call = calls.first { return call }
        }
        return nil
    }

    /// Withdraws all calls on their way.
    func withdrawAll() -> [CrossReactorCallBatch.Withdrawn] {
        timer?.cancel()
        timer = nil
        defer { markResponsesRead() }
        return inFlight.flatMap { $0.withdraw { _ in true } }
    }

    /// Withdraws the calls whose deadline has passed.
    ///
    /// - Parameter now: By the clock of the connection's reactor.
    /// - Returns: These calls, and the earliest deadline of the others; nil without others.
    func withdrawExpired(at now: UInt64) -> (calls: [CrossReactorCallBatch.Withdrawn], nextDeadline: UInt64?) {
        (timer, watchedUntil) = (nil, .max)
        var next: UInt64?
        let calls = inFlight.flatMap { batch in
            batch.withdraw { call in
                let deadline = batch.deadline(call)
                if deadline > now { next = min(next ?? .max, deadline) }
                return deadline <= now
            }
        }
        return (calls, next)
    }

    /// Sets one timer for all calls on their way, in place of an earlier one.
    ///
    /// - Parameter expire: Called on the connection's reactor. The timer retains it until it fires or all calls are withdrawn.
    func setTimer(until deadline: UInt64, by connectionReactor: Reactor, _ expire: @escaping () -> Void) {
        timer?.cancel()
        watchedUntil = deadline
        timer = connectionReactor.schedule(at: deadline, expire)
    }
}
