internal import Platform
internal import Transports

/// A call that stands in a `CallQueue`: what it takes to run it and to answer it, and no more.
package struct QueuedCall {
    package let record: ActorRecord
    package let method: ActorMethod
    package let callID: [UInt8]
    /// Of its message, as they count.
    package let bytes: Int
    package let limit: Duration
    /// By the monotonic clock, in nanoseconds.
    package let deadline: UInt64
    fileprivate let operation: CallOperation
    fileprivate let caller: Caller?
    fileprivate let owner: any CallOwner
    fileprivate let mark: UInt64

    package init(
        _ operation: @escaping CallOperation, of record: ActorRecord, _ method: ActorMethod, callID: [UInt8],
        bytes: Int, within limit: Duration, by deadline: UInt64, from caller: Caller?, for owner: any CallOwner
    ) {
        (self.operation, self.record, self.method, self.owner) = (operation, record, method, owner)
        (self.callID, self.bytes, self.limit, self.deadline) = (callID, bytes, limit, deadline)
        self.caller = caller
        mark = CallQueue.mark(callID, owner)
    }
}

/// Who asked for calls that stand in a `CallQueue`. Asked on the queue's reactor.
package protocol CallOwner: AnyObject {
    /// The call has ended, and nobody has waited for it longer than it ran.
    func didRun(_ call: borrowing QueuedCall, _ outcome: CallOutcome)
    /// The call has suspended, or is to have a task of its own: gives what stands for it from now on, and what is called with its
    /// outcome.
    func detach(_ call: borrowing QueuedCall) -> (call: any CallUnderWay, completion: CallCompletion)
}

/// Calls of methods that may suspend, to actors of one reactor. Most do not, and then a task, a timer and a place in a table for each
/// would cost more than it does: so they run one behind the other in one task, which begins in the reactor's queue and takes what
/// has come until then. One that suspends is given all that at the end of the turn, and those behind it get tasks of
/// their own: none waits for it.
///
/// `@unchecked Sendable`: touched on its reactor alone.
package final class CallQueue: EndOfTurn, @unchecked Sendable {
    /// A task that takes calls.
    ///
    /// `@unchecked Sendable`: touched on the reactor alone.
    private final class Run: @unchecked Sendable {
        /// Set before it takes any: it waits for its place in the reactor's queue first.
        var task: Task<Void, Never>?
        /// Set once its call has suspended.
        var completion: CallCompletion?
    }

    /// So long a task takes more calls in one turn, as connections have it for theirs.
    private static let slice: UInt64 = 100_000
    /// So many calls of an actor have tasks of their own after one that has suspended: others of the same kind may as well.
    private static let apart: UInt8 = 64

    private let states: SystemShard
    // Access to these is not checked, as each call asks for all of them: nothing calls back here while one is changed.
    @exclusivity(unchecked) private var calls = WorkQueue<QueuedCall>()
    /// What those that stand here are known by, each once.
    @exclusivity(unchecked) private var marks: Set<UInt64> = []
    /// The task that is about to take calls, or takes them.
    @exclusivity(unchecked) private var run: Run?
    /// The call that it runs.
    @exclusivity(unchecked) private var current: QueuedCall?
    @exclusivity(unchecked) private var isLookedAt = false

    package init(_ states: SystemShard) { self.states = states }

    package var isEmpty: Bool { calls.isEmpty }

    /// Whether calls of an actor of this reactor may stand here.
    @inline(__always)
    package func takes(_ record: ActorRecord) -> Bool {
        guard record.life.apart == 0 else {
            record.life.apart &-= 1
            return false
        }
        return record.home === states && record.persisted == nil
    }

    /// Whether a call of that name may stand here: one that does is never overlooked.
    package func mayHave(_ callID: [UInt8], of owner: some CallOwner) -> Bool {
        marks.contains(Self.mark(callID, owner))
    }

    fileprivate static func mark(_ callID: [UInt8], _ owner: any CallOwner) -> UInt64 {
        var mark = UInt64(UInt(bitPattern: ObjectIdentifier(owner)))
        for byte in callID { mark = (mark ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return mark
    }

    /// Has a call run behind those that have come before. Nothing but its caller is bound to its task.
    package func add(_ call: consuming QueuedCall) {
        marks.insert(call.mark)
        call.record.life.didStart()
        calls.append(call)
        if run == nil { start() }
    }

    /// Gives the calls that stand here tasks of their own, for what must not run before them.
    @inline(__always)
    package func flush() { if !isEmpty { detachAll() } }

    private func take() -> QueuedCall? {
        guard !isEmpty else { return nil }
        let call = calls.removeFirst()
        marks.remove(call.mark)
        return call
    }

    private func start() {
        let (run, isolation) = (Run(), states.isolation)
        self.run = run
        // Detached: what is bound where the first of the calls has come from is not for the others.
        run.task = Task.immediateDetached { await self.run(run, isolation: isolation) }
    }

    private func run(_ run: Run, isolation: isolated LoopIsolation) async {
        // Its calls have been given tasks of their own, which stand behind it.
        guard self.run === run else { return }
        let began = MonotonicClock.now
        while let call = take() {
            current = call
            if !isLookedAt {
                isLookedAt = true
                states.reactor.atEndOfTurn(self)
            }
            let outcome = await Self.outcome(of: call, at: began, isolation: isolation)
            if let completion = run.completion { return completion(outcome) }
            current = nil
            call.owner.didRun(call, outcome)
            // A task that is cancelled stays so.
            if Task.isCancelled || MonotonicClock.now &- began > Self.slice { break }
        }
        guard self.run === run else { return }
        self.run = nil
        if !isEmpty { start() }
    }

    private static func outcome(
        of call: QueuedCall, at now: UInt64, isolation: isolated LoopIsolation
    ) async -> CallOutcome {
        guard now < call.deadline else {
            call.record.life.didBegin()
            return .failure(TrebuchetError(.timeout, "the call took longer than \(call.limit)"))
        }
        let operation = call.operation
        guard let caller = call.caller else {
            return await CallTask.outcome(of: operation, until: call.deadline, isolation: isolation)
        }
        return await Caller.$current.withValue(caller) {
            await CallTask.outcome(of: operation, until: call.deadline, isolation: isolation)
        }
    }

    package func endOfTurn() {
        isLookedAt = false
        guard let call = current, let run, let task = run.task else { return }
        (current, self.run) = (nil, nil)
        call.record.life.apart = Self.apart
        let detached = call.owner.detach(call)
        run.completion = detached.completion
        detached.call.run(in: task)
        flush()
    }

    @inline(never)
    private func detachAll() {
        // A task that has not begun stands before theirs, and what comes next must not run in its place.
        if current == nil { run = nil }
        while let call = take() {
            // Counted anew as its task begins.
            call.record.life.didBegin()
            let detached = call.owner.detach(call)
            let (record, operation) = (call.record, call.operation)
            guard let caller = call.caller else {
                CallTask.start(record, operation, detached.call, detached.completion)
                continue
            }
            Caller.$current.withValue(caller) {
                CallTask.start(record, operation, detached.call, detached.completion)
            }
        }
    }
}
