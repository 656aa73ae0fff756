internal import Platform
internal import Synchronization
internal import Transports

/// A call in a `CallQueue`: the data needed to run and answer it.
package struct QueuedCall {
    package let record: ActorRecord
    package let method: ActorMethod
    package let callID: [UInt8]
    /// The size of its message, as counted for the memory limit.
    package let bytes: Int
    package let limit: Duration
    /// The deadline in nanoseconds of the monotonic clock.
    package let deadline: UInt64
    fileprivate let operation: CallOperation
    fileprivate let caller: Caller?
    fileprivate let owner: any CallQueueOwner
    fileprivate let mark: UInt64

    package init(
        _ operation: @escaping CallOperation, of record: ActorRecord, _ method: ActorMethod, callID: [UInt8],
        bytes: Int, within limit: Duration, by deadline: UInt64, from caller: Caller?, for owner: any CallQueueOwner
    ) {
        (self.operation, self.record, self.method, self.owner) = (operation, record, method, owner)
        (self.callID, self.bytes, self.limit, self.deadline) = (callID, bytes, limit, deadline)
        self.caller = caller
        mark = CallQueue.mark(callID, owner)
    }
}

/// The connection that queued calls belong to. Methods run on the queue's reactor.
package protocol CallQueueOwner: AnyObject {
    /// Reports that a call has ended in the queue's task.
    func didRun(_ call: borrowing QueuedCall, _ outcome: CallOutcome)
    /// Reports that a call has ended in the queue's task, and that its response waits; ``respond(to:_:)`` follows.
    func didWaitForCommit(_ call: borrowing QueuedCall)
    /// Sends the response of a call that has waited.
    func respond(to call: borrowing QueuedCall, _ outcome: CallOutcome)
    /// Detaches a call that has suspended or needs a separate task. Returns the object that represents the call from now on and
    /// the completion for its outcome.
    func detach(_ call: borrowing QueuedCall) -> (call: any CancellableCall, completion: CallCompletion)
}

/// A queue for calls of methods that may suspend, to actors of one reactor. Most such calls do not suspend, and a task, a timer
/// and a table entry would then cost more than the call. The calls therefore run one after another in one task. The task is
/// queued on the reactor and takes the calls that have arrived when it starts. A call that suspends gets a task entry and a
/// timer at the end of the turn. The calls behind it get separate tasks, so none waits for it.
///
/// `@unchecked Sendable`: accessed only on its reactor.
package final class CallQueue: EndOfTurnTask, @unchecked Sendable {
    /// A task that runs queued calls.
    private final class Run {
        let number: UInt64
        /// Set before the task takes calls, because it first waits in the reactor's queue.
        var task: Task<Void, Never>?
        /// Set after the current call has suspended.
        var completion: CallCompletion?
        /// Distinguishes the task from others.
        var identity: UnsafeCurrentTask?
        /// Set while the response of the current call is to be held.
        var gate: (gate: ResponseGate, result: (() throws -> _CallResult)?)?

        init(_ number: UInt64) { self.number = number }
    }

    /// The time slice of one task in a turn in nanoseconds, the same as for connections.
    private static let slice: UInt64 = 100_000
    /// The number of calls of an actor that get separate tasks after one has suspended, because similar calls may suspend too.
    private static let separateTaskCount: UInt8 = 64

    private let states: SystemShard
    // Exclusivity is unchecked because each call accesses these: no code calls back into the queue during a change.
    @exclusivity(unchecked) private var calls = WorkQueue<QueuedCall>()
    /// The hashes of the queued calls.
    @exclusivity(unchecked) private var marks: Set<UInt64> = []
    /// The task that takes calls or is about to.
    @exclusivity(unchecked) private var run: Run?
    private var runCount: UInt64 = 0
    /// The call that the task runs.
    @exclusivity(unchecked) private var current: QueuedCall?
    @exclusivity(unchecked) private var isBeingChecked = false

    package init(_ states: SystemShard) {
        self.states = states
        states.callQueue = self
    }

    package var isEmpty: Bool { calls.isEmpty }

    /// Counts a call that runs in a separate task although its actor belongs to the queue's reactor.
    package func didStartSeparately(_ record: ActorRecord) {
        let rest = record.actorInstance.separateTaskCalls.load(ordering: .relaxed)
        if rest > 0 { record.actorInstance.separateTaskCalls.store(rest - 1, ordering: .relaxed) }
    }

    /// Returns whether a call with this `callID` may be queued. There are no false negatives.
    package func mayHave(_ callID: [UInt8], of owner: some CallQueueOwner) -> Bool {
        marks.contains(Self.mark(callID, owner))
    }

    fileprivate static func mark(_ callID: [UInt8], _ owner: any CallQueueOwner) -> UInt64 {
        var mark = UInt64(UInt(bitPattern: ObjectIdentifier(owner)))
        for byte in callID { mark = (mark ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return mark
    }

    /// Queues a call behind earlier ones. Only its caller is bound as a task-local value.
    package func enqueue(_ call: consuming QueuedCall) {
        marks.insert(call.mark)
        call.record.actorInstance.didStart()
        calls.append(call)
        if run == nil { start() }
    }

    /// Moves the queued calls to separate tasks, before work that must not overtake them.
    @inline(__always)
    package func flush() { if !isEmpty { detachAll() } }

    private func dequeue() -> QueuedCall? {
        guard !isEmpty else { return nil }
        let call = calls.removeFirst()
        marks.remove(call.mark)
        return call
    }

    private func start() {
        runCount &+= 1
        let (run, number, isolation) = (Run(runCount), runCount, states.isolation)
        self.run = run
        // Detached, because the task-local values of the first call must not apply to the others.
        run.task = Task.immediateDetached { await self.runCalls(ofRun: number, isolation: isolation) }
    }

    private func runCalls(ofRun number: UInt64, isolation: isolated LoopIsolation) async {
        // The calls of this task were moved to separate tasks behind it.
        guard let run, run.number == number else { return }
        let began = MonotonicClock.now
        run.identity = withUnsafeCurrentTask { $0 }
        while let call = dequeue() {
            current = call
            if !isBeingChecked {
                isBeingChecked = true
                states.reactor.atEndOfTurn(self)
            }
            let outcome = await Self.outcome(of: call, at: began, isolation: isolation)
            if run.gate != nil {
                hold(call, outcome, of: run)
                if run.completion != nil { return }
            } else {
                if let completion = run.completion { return completion(outcome) }
                current = nil
                call.owner.didRun(call, outcome)
            }
            // A cancelled task remains cancelled, so further calls need another task.
            if Task.isCancelled || MonotonicClock.now &- began > Self.slice { break }
        }
        guard self.run === run else { return }
        self.run = nil
        if !isEmpty { start() }
    }

    /// Holds the response of the current call until a gate opens, if the current task is that of the queue; see
    /// ``SystemShard/deferResponse(until:result:)``.
    func deferResponse(until gate: ResponseGate, result: (() throws -> _CallResult)?) -> Bool {
        guard current != nil, let run, let identity = run.identity, withUnsafeCurrentTask(body: { $0 == identity })
        else { return false }
        run.gate = (gate, result)
        return true
    }

    @inline(never)
    private func hold(_ call: QueuedCall, _ outcome: CallOutcome, of run: Run) {
        guard let (gate, result) = run.gate else { return }
        run.gate = nil
        let respond: (CallOutcome) -> Void
        if let completion = run.completion {
            respond = completion
        } else {
            current = nil
            call.owner.didWaitForCommit(call)
            respond = { call.owner.respond(to: call, $0) }
        }
        gate.hold(
            ResponseGate.Entry(
                outcome: outcome, result: result, deadline: call.deadline, limit: call.limit, respond: respond))
    }

    private static func outcome(
        of call: QueuedCall, at now: UInt64, isolation: isolated LoopIsolation
    ) async -> CallOutcome {
        guard now < call.deadline else {
            call.record.actorInstance.didBegin()
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
        isBeingChecked = false
        guard let call = current, let run, let task = run.task else { return }
        (current, self.run) = (nil, nil)
        call.record.actorInstance.separateTaskCalls.store(Self.separateTaskCount, ordering: .relaxed)
        let detached = call.owner.detach(call)
        run.completion = detached.completion
        detached.call.run(in: task)
        flush()
    }

    @inline(never)
    private func detachAll() {
        // A task that has not started runs before the separate tasks, and later calls must not run in it.
        if current == nil { run = nil }
        while let call = dequeue() {
            // The call is counted again when its separate task starts.
            call.record.actorInstance.didBegin()
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
