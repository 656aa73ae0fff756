internal import Bytes
internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire

/// Synchronous calls of one connection to actors of one other reactor, which are sent together, as are their responses. Each call
/// is a few numbers and the bytes of its message here: no object, no timer, no table entry.
///
/// `@unchecked Sendable`: isolated to the connection's reactor until it is closed. Then the calls do not change any more. The other
/// reactor accesses `next`, `replies` and `deferredCalls`, the connection's reactor `answered`, `unanswered` and `isReusable`; `withdrawn`
/// is atomic.
final class CrossReactorCallBatch: BatchedTask, @unchecked Sendable {
    /// The number of bits in `withdrawn`.
    static let maximumCalls = 64
    /// The size of messages at which a batch is closed.
    private static let maximumBytes = 64 << 10
    /// The memory that is kept for the next calls.
    private static let retainedCapacity = 16 << 10

    struct Call {
        let offset: Int32
        let count: Int32
        /// The range in its message.
        let callID: ByteRange
        /// The time limit in nanoseconds.
        let limit: UInt64
        /// Its index in `targets`.
        let target: Int
        /// nil when the message is scanned again, which costs less than a copy of many ranges.
        let arguments: (count: Int, first: ByteRange, second: ByteRange)?
    }

    struct Target {
        let record: ActorRecord
        let method: ActorMethod
    }

    private let calls = UnsafeMutablePointer<Call>.allocate(capacity: maximumCalls)
    private(set) var count = 0
    private(set) var targets: [Target] = []
    private var messages = ByteBuffer()
    /// nil while the batch is unused, like the following properties.
    private(set) var queue: CrossReactorCallQueue?
    private var connection: ServerConnection?
    /// The shard of the actors.
    private var shard: ServerShard?
    private(set) var hosting: ClientActorHostConnection?
    /// The caller of all of its calls.
    private(set) var caller: Caller?
    /// The start by the monotonic clock.
    private(set) var began: UInt64 = 0
    /// The start by the clock of the connection's reactor.
    private(set) var beganByReactor: UInt64 = 0

    /// The answered calls, one bit each.
    private var answered: UInt64 = 0
    /// The number of calls that have not returned.
    private(set) var unanswered = 0
    private(set) var isReusable = true
    private let withdrawn = Atomic<UInt64>(0)

    /// The index of the next call to run.
    var next = 0
    var replies = CrossReactorReplies()
    /// Calls in tasks, which wait for earlier calls to start.
    var deferredCalls: [Int: InFlightCall] = [:]

    deinit { calls.deallocate() }

    /// Starts a batch of a connection, which accepts calls until it is sent.
    func startBatch(
        _ queue: CrossReactorCallQueue, of connection: ServerConnection, to shard: ServerShard,
        _ hosting: ClientActorHostConnection?, _ caller: Caller?
    ) {
        (self.queue, self.connection, self.shard, self.hosting, self.caller) = (
            queue, connection, shard, hosting, caller
        )
        began = MonotonicClock.now
        beganByReactor = began &+ connection.shard.reactor.timeAhead
        queue.addBatch(self)
    }

    /// The size of its messages.
    var byteCount: Int { messages.count }

    func hasRoom(for bytes: Int) -> Bool {
        count < Self.maximumCalls && (count == 0 || messages.count + bytes <= Self.maximumBytes)
    }

    func addCall(_ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message, limit: UInt64) {
        if targets.last.map({ $0.record === record && $0.method === method }) != true {
            targets.append(Target(record: record, method: method))
        }
        let (envelope, bytes) = (message.envelope, message.bytes)
        var arguments: (Int, ByteRange, ByteRange)?
        if method.arguments <= 2, method.generics == 0 {
            let ranges = envelope.pointee.arguments
            arguments = (
                ranges.count, ranges.isEmpty ? .absent : ranges[0], ranges.count < 2 ? .absent : ranges[1]
            )
        }
        (calls + count).initialize(
            to: Call(
                offset: Int32(messages.count), count: Int32(bytes.count), callID: envelope.pointee.callID, limit: limit,
                target: targets.count - 1, arguments: arguments))
        messages.append(bytes)
        count += 1
        unanswered += 1
    }

    @inline(__always)
    subscript(index: Int) -> Call { calls[index] }

    func bytes(_ call: Call) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: messages.bytes[Int(call.offset)..<Int(call.offset + call.count)])
    }

    func callID(_ call: Call) -> UnsafeRawBufferPointer { call.callID.bytes(in: bytes(call)) }

    /// Returns the deadline by the clock of the connection's reactor.
    func deadline(_ call: Call) -> UInt64 { beganByReactor &+ call.limit }

    // MARK: On the connection's reactor

    func close() { queue?.closeBatch(self) }

    /// Returns whether a call is answered, or needs no response.
    func isAnswered(_ index: Int) -> Bool { answered & (1 << UInt64(index)) != 0 }

    /// Marks a call as answered; returns false when it was.
    func answer(_ index: Int) -> Bool {
        guard !isAnswered(index) else { return false }
        answered |= 1 << UInt64(index)
        return true
    }

    /// Marks a call as answered that need not run any more.
    private func withdraw(_ index: Int) {
        answered |= 1 << UInt64(index)
        withdrawn.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        isReusable = false
    }

    /// Cancels the tasks of withdrawn calls.
    private func cancelTasks() {
        queue?.reactor.execute {
            for (index, call) in self.deferredCalls where self.isWithdrawn(index) { call.cancel() }
        }
    }

    /// Notes that this number of calls has returned.
    func didReturn(_ calls: Int) { unanswered -= calls }

    func retainForTask() { isReusable = false }

    /// Prepares it for other calls. No other code may use it.
    func reset() {
        (queue, connection, shard, hosting, caller) = (nil, nil, nil, nil, nil)
        targets.removeAll(keepingCapacity: true)
        messages.reset(keepingAtMost: Self.retainedCapacity)
        (count, next, answered, unanswered) = (0, 0, 0, 0)
        replies.reset(from: 0, keepingAtMost: Self.retainedCapacity)
    }

    // MARK: On the reactor of the actors

    func arrive() { queue?.enqueue(self) }

    /// Runs calls that have not run, until the time slice is used up. Responses leave at the end of the turn.
    ///
    /// - Parameter room: The bytes of responses that may still be produced.
    /// - Returns: True when all calls have run.
    func run(_ slice: inout TimeSlice, room: Int) -> Bool {
        guard let queue, let connection, let shard else { return true }
        guard let scratch = shard.scans.reserve() else { return false }
        defer { shard.scans.release() }
        let replies = replies
        ServerConnection.withCaller(caller, hosting) {
            // Successive calls mostly have the same target: its references are not counted for each.
            var (target, place) = (targets[calls[next].target], calls[next].target)
            while next < count, replies.byteCount < room {
                let call = calls[next]
                if call.target != place { (target, place) = (targets[call.target], call.target) }
                next += 1
                run(call, next - 1, target, at: shard, scratch, replies)
                // As for calls over connections of this reactor.
                if shard.states.isMarked { shard.states.callDidEnd() }
                if slice.isCheckDue(bytes: Int(call.count)),
                    slice.isUsedUp(lastClockReading: &shard.reactor.lastClockReading)
                {
                    break
                }
            }
        }
        let isDone = next == count
        if !isDone {
            self.replies = CrossReactorReplies()
            self.replies.reset(from: next, keepingAtMost: 0)
        }
        queue.addUnreadBytes(replies.byteCount)
        let home = shard.states
        connection.shard.deliver(from: home, answers: replies.count) {
            connection.crossReactorCalls?.receiveResponses(replies, of: self, from: home)
        }
        return isDone
    }

    private func run(
        _ call: Call, _ index: Int, _ target: Target, at shard: ServerShard,
        _ scratch: UnsafeMutablePointer<ScannedEnvelope>, _ replies: CrossReactorReplies
    ) {
        let instance = target.record.actorInstance
        if isWithdrawn(index) { return replies.appendWithdrawn() }
        if instance.isDeactivated { return replies.appendDeactivated() }
        if instance.isStarting {
            return deferCall(call, index, target, at: shard) ? replies.appendDeferred() : replies.appendDeactivated()
        }
        // It may have waited while its connection was revoked or its principal left.
        if let refusal = caller?.refusalAfterAdmission(of: target.record.name) { return replies.append(refusal) }
        let bytes = bytes(call)
        instance.didRunInPlace()
        do {
            if let arguments = call.arguments {
                scratch.pointee.replaceArguments(arguments.count, arguments.first, arguments.second)
            } else {
                try scratch.pointee.scan(bytes)
            }
            try shard.callInPlace(
                target.record, target.method, Message(bytes: bytes, envelope: UnsafePointer(scratch)))
            replies.append(shard.reply.pointee.bytes)
        } catch {
            replies.append(
                shard.hidesErrors(of: target.method, target.record.type) ? RedactedError.hiding(error) : error)
        }
    }

    /// Queues a call behind earlier calls that have not started yet. Returns false when the actor has been deactivated.
    private func deferCall(_ call: Call, _ index: Int, _ target: Target, at shard: ServerShard) -> Bool {
        guard let connection else { return false }
        let elapsed = MonotonicClock.now &- began
        let rest = Duration.nanoseconds(Int64(call.limit &- min(elapsed, call.limit)))
        let running = InFlightCall(callID: [], after: rest, on: shard.reactor, byteCount: 0)
        let home = shard.states
        deferredCalls[index] = running
        let isThere = shard.withMessage(Array(bytes(call))) {
            shard.run(target.method, of: target.record, $0, running) { outcome in
                connection.shard.deliver(from: home) {
                    connection.crossReactorCalls?.receiveResponse(
                        outcome, of: index, in: self, from: home)
                }
            }
        }
        return isThere == true
    }

    /// Returns whether the call has no waiting caller.
    @inline(__always)
    func isWithdrawn(_ index: Int) -> Bool { withdrawn.load(ordering: .relaxed) & (1 << UInt64(index)) != 0 }
}

extension CrossReactorCallBatch {
    /// A call of a batch that needs no response of its actor any more.
    struct Withdrawn {
        let batch: CrossReactorCallBatch
        fileprivate let call: Call

        var callID: UnsafeRawBufferPointer { batch.callID(call) }
        var method: ActorMethod { batch.targets[call.target].method }

        /// The error of a call that has reached its deadline.
        var timeout: TrebuchetError { call.timeout }
    }

    /// Withdraws the unanswered calls that `isIncluded` selects, and cancels their tasks.
    func withdraw(where isIncluded: (Call) -> Bool) -> [Withdrawn] {
        var calls: [Withdrawn] = []
        for index in 0..<count where !isAnswered(index) && isIncluded(self[index]) {
            withdraw(index)
            calls.append(Withdrawn(batch: self, call: self[index]))
        }
        // The tasks of a batch without such a call are left alone: it may have returned and serve other calls.
        if !calls.isEmpty { cancelTasks() }
        return calls
    }
}

extension CrossReactorCallBatch.Call {
    var timeout: TrebuchetError {
        TrebuchetError(.timeout, "the call took longer than \(Duration.nanoseconds(Int64(limit)))")
    }
}

/// Batches that serve further calls, for the connections of one reactor.
struct SpareCrossReactorBatches {
    /// The maximum number of batches that are kept.
    private static let maximumCount = 32

    private var batches: [CrossReactorCallBatch] = []

    mutating func removeLast() -> CrossReactorCallBatch { batches.popLast() ?? CrossReactorCallBatch() }

    /// Keeps a batch whose calls have returned, unless a task may still refer to them.
    mutating func append(_ batch: CrossReactorCallBatch) {
        guard batch.isReusable, batches.count < Self.maximumCount else { return }
        batch.reset()
        batches.append(batch)
    }
}
