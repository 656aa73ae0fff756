internal import Bytes
internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire

/// Synchronous calls of one connection to actors of one other reactor, which go there together, and their answers together back. Each of them is
/// a few numbers and its message's bytes here: no object, no timer, no entry of a table.
///
/// `@unchecked Sendable`: until it is closed it is the connection's reactor's alone. Then what the calls are does not change any more;
/// `next`, `answers` and `later` are the other reactor's, `answered`, `unanswered` and `isReusable` the connection's; `withdrawn` is atomic.
final class CrossingBatch: GatheredWork, @unchecked Sendable {
    /// As many as there are bits in `withdrawn`.
    static let mostCalls = 64
    /// With so many bytes of messages nothing is added.
    private static let mostBytes = 64 << 10
    /// Memory that is kept for the next calls.
    private static let keptBytes = 16 << 10

    typealias Runner = (CrossingBatch, inout TimeSlice, _ room: Int) -> Bool

    struct Call {
        let offset: Int32
        let count: Int32
        /// In its message.
        let callID: ByteRange
        /// Nanoseconds that it may take.
        let limit: UInt64
        /// Its place in `targets`.
        let target: Int
        /// Nil when the message is looked through once more: that takes less than keeping many.
        let arguments: (count: Int, first: ByteRange, second: ByteRange)?
    }

    struct Target {
        let record: ActorRecord
        let method: ActorMethod
    }

    private let calls = UnsafeMutablePointer<Call>.allocate(capacity: mostCalls)
    private(set) var count = 0
    private(set) var targets: [Target] = []
    private var messages = ByteBuffer()
    /// Nil while they are nobody's calls.
    private(set) var crossing: CrossingCalls?
    private(set) var hosting: HostingConnection?
    /// Runs some of them where their actors are; whether all have been.
    private var runner: Runner?
    /// By the monotonic clock.
    private(set) var began: UInt64 = 0
    /// By that of the connection's reactor.
    private(set) var beganByReactor: UInt64 = 0

    /// Those that have got their answers, each a bit.
    private var answered: UInt64 = 0
    /// Those that have not come back.
    private(set) var unanswered = 0
    private(set) var isReusable = true
    private let withdrawn = Atomic<UInt64>(0)

    /// The next one to be run.
    var next = 0
    var answers = CrossingAnswers()
    /// Those that wait for others to begin, in tasks.
    var later: [Int: RunningCall] = [:]

    deinit { calls.deallocate() }

    /// - Parameter timeAhead: how far the clock of the connection's reactor is ahead.
    func begin(
        _ crossing: CrossingCalls, _ hosting: HostingConnection?, timeAhead: UInt64, _ runner: @escaping Runner
    ) {
        (self.crossing, self.hosting, self.runner) = (crossing, hosting, runner)
        began = MonotonicClock.now
        beganByReactor = began &+ timeAhead
    }

    func hasRoom(for bytes: Int) -> Bool {
        count < Self.mostCalls && (count == 0 || messages.count + bytes <= Self.mostBytes)
    }

    func add(_ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message, limit: UInt64) {
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

    /// By the clock of the connection's reactor.
    func deadline(_ call: Call) -> UInt64 { beganByReactor &+ call.limit }

    // MARK: On the connection's reactor

    func close() { if crossing?.open === self { crossing?.open = nil } }

    /// Whether a call has its answer, or none is wanted.
    func isAnswered(_ index: Int) -> Bool { answered & (1 << UInt64(index)) != 0 }

    /// Notes that it has; false when it had.
    func answer(_ index: Int) -> Bool {
        guard !isAnswered(index) else { return false }
        answered |= 1 << UInt64(index)
        return true
    }

    /// The same for one that need not be run any more.
    func withdraw(_ index: Int) {
        answered |= 1 << UInt64(index)
        withdrawn.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        isReusable = false
    }

    /// Has the tasks of those cancelled that were withdrawn.
    func cancelTasks() {
        crossing?.reactor.execute {
            for (index, call) in self.later where self.isWithdrawn(index) { call.cancel() }
        }
    }

    /// So many have come back.
    func didReturn(_ calls: Int) { unanswered -= calls }

    func keepsTask() { isReusable = false }

    /// Makes it ready for other calls. Nobody has it in hand.
    func reset() {
        (crossing, hosting, runner) = (nil, nil, nil)
        targets.removeAll(keepingCapacity: true)
        messages.reset(keepingAtMost: Self.keptBytes)
        (count, next, answered, unanswered) = (0, 0, 0, 0)
        answers.reset(from: 0, keepingAtMost: Self.keptBytes)
    }

    // MARK: On the reactor of the actors

    func arrive() { crossing?.add(self) }

    /// Runs those that have not been run, as far as they may; whether all have been.
    func run(_ slice: inout TimeSlice, room: Int) -> Bool { runner?(self, &slice, room) ?? true }

    /// Whether nobody waits for a call any more.
    @inline(__always)
    func isWithdrawn(_ index: Int) -> Bool { withdrawn.load(ordering: .relaxed) & (1 << UInt64(index)) != 0 }
}

/// What calls of a batch have come to, in a row. It is the other reactor's until it is delivered, and then the connection's.
final class CrossingAnswers: @unchecked Sendable {
    // `@unchecked Sendable`: handed from one reactor to the other as a whole.
    enum Outcome {
        case result(UnsafeRawBufferPointer)
        case failed(any Error)
        /// It was not run: its actor has been let go.
        case gone
        /// It runs in a task, and answers by itself.
        case later
        /// Nobody waited for it any more.
        case withdrawn
    }

    private static let (failed, gone, later, withdrawn) = (Int32(-1), Int32(-2), Int32(-3), Int32(-4))

    private(set) var first = 0
    private(set) var count = 0
    /// Where each result ends in `bytes`, or what it is instead.
    private let ends = UnsafeMutablePointer<Int32>.allocate(capacity: CrossingBatch.mostCalls)
    private var bytes = ByteBuffer()
    private var errors: [any Error] = []

    deinit { ends.deallocate() }

    var byteCount: Int { bytes.count }

    func reset(from first: Int, keepingAtMost limit: Int) {
        (self.first, count) = (first, 0)
        bytes.reset(keepingAtMost: limit)
        if !errors.isEmpty { errors = [] }
    }

    func add(_ result: UnsafeRawBufferPointer) {
        bytes.append(result)
        add(Int32(bytes.count))
    }

    func add(_ error: any Error) {
        errors.append(error)
        add(Self.failed)
    }

    func addGone() { add(Self.gone) }
    func addLater() { add(Self.later) }
    func addWithdrawn() { add(Self.withdrawn) }

    private func add(_ end: Int32) {
        ends[count] = end
        count += 1
    }

    /// Gives each of them to `body`, in their order, with the number of the call.
    func forEach(_ body: (Int, Outcome) -> Void) {
        var (start, failures) = (0, 0)
        for place in 0..<count {
            let outcome: Outcome
            switch ends[place] {
            case Self.failed:
                outcome = .failed(errors[failures])
                failures += 1
            case Self.gone: outcome = .gone
            case Self.later: outcome = .later
            case Self.withdrawn: outcome = .withdrawn
            case let end:
                outcome = .result(UnsafeRawBufferPointer(rebasing: bytes.bytes[start..<Int(end)]))
                start = Int(end)
            }
            body(first + place, outcome)
        }
    }
}
