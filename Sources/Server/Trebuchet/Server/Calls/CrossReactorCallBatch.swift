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

    typealias Runner = (CrossReactorCallBatch, inout TimeSlice, _ room: Int) -> Bool

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
    /// nil while the batch is unused.
    private(set) var crossing: CrossReactorCallQueue?
    private(set) var hosting: ClientActorHostConnection?
    /// The caller of all of its calls.
    private(set) var caller: Caller?
    /// Runs some of the calls on the actors' reactor; returns whether all have run.
    private var runner: Runner?
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

    /// - Parameter timeAhead: The difference of the connection's reactor clock to the monotonic clock.
    func startBatch(
        _ crossing: CrossReactorCallQueue, _ hosting: ClientActorHostConnection?, _ caller: Caller?, timeAhead: UInt64,
        _ runner: @escaping Runner
    ) {
        (self.crossing, self.hosting, self.caller, self.runner) = (crossing, hosting, caller, runner)
        began = MonotonicClock.now
        beganByReactor = began &+ timeAhead
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

    func close() { if crossing?.open === self { crossing?.open = nil } }

    /// Returns whether a call is answered, or needs no response.
    func isAnswered(_ index: Int) -> Bool { answered & (1 << UInt64(index)) != 0 }

    /// Marks a call as answered; returns false when it was.
    func answer(_ index: Int) -> Bool {
        guard !isAnswered(index) else { return false }
        answered |= 1 << UInt64(index)
        return true
    }

    /// Marks a call as answered that need not run any more.
    func withdraw(_ index: Int) {
        answered |= 1 << UInt64(index)
        withdrawn.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        isReusable = false
    }

    /// Cancels the tasks of withdrawn calls.
    func cancelTasks() {
        crossing?.reactor.execute {
            for (index, call) in self.deferredCalls where self.isWithdrawn(index) { call.cancel() }
        }
    }

    /// Notes that this number of calls has returned.
    func didReturn(_ calls: Int) { unanswered -= calls }

    func retainForTask() { isReusable = false }

    /// Prepares it for other calls. No other code may use it.
    func reset() {
        (crossing, hosting, caller, runner) = (nil, nil, nil, nil)
        targets.removeAll(keepingCapacity: true)
        messages.reset(keepingAtMost: Self.retainedCapacity)
        (count, next, answered, unanswered) = (0, 0, 0, 0)
        replies.reset(from: 0, keepingAtMost: Self.retainedCapacity)
    }

    // MARK: On the reactor of the actors

    func arrive() { crossing?.enqueue(self) }

    /// Runs calls that have not run, within the slice; returns whether all have.
    func run(_ slice: inout TimeSlice, room: Int) -> Bool { runner?(self, &slice, room) ?? true }

    /// Returns whether the call has no waiting caller.
    @inline(__always)
    func isWithdrawn(_ index: Int) -> Bool { withdrawn.load(ordering: .relaxed) & (1 << UInt64(index)) != 0 }
}

/// The outcomes of calls of a batch, in order. They belong to the other reactor until delivery, and then to the connection.
final class CrossReactorReplies: @unchecked Sendable {
    // `@unchecked Sendable`: handed from one reactor to the other as a whole.
    enum Outcome {
        case result(UnsafeRawBufferPointer)
        case failed(any Error)
        /// It did not run: its actor has been deactivated.
        case deactivated
        /// It runs in a task and responds separately.
        case deferred
        /// It has no waiting caller.
        case withdrawn
    }

    private static let (failed, deactivated, deferred, withdrawn) = (Int32(-1), Int32(-2), Int32(-3), Int32(-4))

    private(set) var first = 0
    private(set) var count = 0
    /// The end of each result in `bytes`, or a negative code for another outcome.
    private let ends = UnsafeMutablePointer<Int32>.allocate(capacity: CrossReactorCallBatch.maximumCalls)
    private var bytes = ByteBuffer()
    private var errors: [any Error] = []

    deinit { ends.deallocate() }

    var byteCount: Int { bytes.count }

    func reset(from first: Int, keepingAtMost limit: Int) {
        (self.first, count) = (first, 0)
        bytes.reset(keepingAtMost: limit)
        if !errors.isEmpty { errors = [] }
    }

    func append(_ result: UnsafeRawBufferPointer) {
        bytes.append(result)
        append(Int32(bytes.count))
    }

    func append(_ error: any Error) {
        errors.append(error)
        append(Self.failed)
    }

    func appendDeactivated() { append(Self.deactivated) }
    func appendDeferred() { append(Self.deferred) }
    func addWithdrawn() { append(Self.withdrawn) }

    private func append(_ end: Int32) {
        ends[count] = end
        count += 1
    }

    /// Calls `body` with each outcome and the index of its call, in order.
    func forEach(_ body: (Int, Outcome) -> Void) {
        var (start, failures) = (0, 0)
        for offset in 0..<count {
            let outcome: Outcome
            switch ends[offset] {
            case Self.failed:
                outcome = .failed(errors[failures])
                failures += 1
            case Self.deactivated: outcome = .deactivated
            case Self.deferred: outcome = .deferred
            case Self.withdrawn: outcome = .withdrawn
            case let end:
                outcome = .result(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<Int(end)]))
                start = Int(end)
            }
            body(first + offset, outcome)
        }
    }
}
