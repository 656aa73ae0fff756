package import Bytes
internal import Synchronization

/// Which trace something is part of, and which span of it: what the field `traceparent` of the W3C says.
///
///     try await TraceContext.with(TraceContext(traceparent)) { try await todos.addTodo(title: "Milk") }
///
/// Calls that are made within `with` are part of the trace; so is what they lead to at the server, as far as that traces.
public struct TraceContext: Sendable, Hashable {
    private let high: UInt64
    private let low: UInt64
    /// Of the span.
    package let span: UInt64
    /// Whether what happens is to be kept. Who makes the trace decides that, for all who have a part in it.
    public let isSampled: Bool

    private init(high: UInt64, low: UInt64, span: UInt64, isSampled: Bool) {
        (self.high, self.low, self.span) = (high, low, span)
        self.isSampled = isSampled
    }

    /// The beginning of a new trace.
    public init(isSampled: Bool = true) {
        self.init(high: Self.newID, low: Self.newID, span: Self.newID, isSampled: isSampled)
    }

    /// What a `traceparent` says, as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; nil where it is none.
    public init?(_ traceparent: String) {
        var text = traceparent
        guard let context = text.withUTF8({ Self(UnsafeRawBufferPointer($0)) }) else { return nil }
        self = context
    }

    /// The same of bytes.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        let dash = UInt8(ascii: "-")
        guard bytes.count >= 55, bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            let version = Self.number(bytes, 0..<2), version != 0xFF,
            // Later versions may say more, behind what this one says.
            bytes.count == 55 || version > 0 && bytes[55] == dash,
            let high = Self.number(bytes, 3..<19), let low = Self.number(bytes, 19..<35), high | low != 0,
            let span = Self.number(bytes, 36..<52), span != 0, let flags = Self.number(bytes, 53..<55)
        else { return nil }
        self.init(high: high, low: low, span: span, isSampled: flags & 1 == 1)
    }

    /// As the field is written.
    public var traceparent: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    /// 32 hexadecimal digits, the same for all that is part of the trace.
    public var traceID: String { Self.digits(high) + Self.digits(low) }

    /// 16 hexadecimal digits.
    public var spanID: String { Self.digits(span) }

    /// A new span of the same trace.
    package var child: TraceContext {
        TraceContext(high: high, low: low, span: Self.newID, isSampled: isSampled)
    }

    /// Random numbers that do not ask the system each time. They are no secrets.
    private static let numbers = RandomNumbers()

    /// Never 0.
    private static var newID: UInt64 { max(1, numbers.next()) }

    private static func number(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UInt64? {
        var value: UInt64 = 0
        for byte in bytes[range] {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            // No capitals.
            case 0x61...0x66: digit = byte - 0x61 + 10
            default: return nil
            }
            value = value << 4 | UInt64(digit)
        }
        return value
    }

    package static func digits(_ value: UInt64) -> String {
        String(unsafeUninitializedCapacity: 16) { target in
            write(value) { target.initializeElement(at: $0, to: $1) }
            return 16
        }
    }

    /// 16 digits, each with its place.
    @inline(__always)
    private static func write(_ value: UInt64, _ body: (Int, UInt8) -> Void) {
        for place in 0..<16 {
            let digit = UInt8(truncatingIfNeeded: value >> UInt64(60 - 4 * place)) & 15
            body(place, digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
    }

    /// `traceID` as ASCII digits.
    package func appendTraceID(to buffer: inout ByteBuffer) {
        Self.append(high, to: &buffer)
        Self.append(low, to: &buffer)
    }

    /// 16 ASCII digits.
    package static func append(_ value: UInt64, to buffer: inout ByteBuffer) {
        buffer.append(count: 16) { target in write(value) { target[$0] = $1 } }
    }

    // MARK: The one of now

    private struct Bound: Sendable {
        let context: TraceContext?
        /// It holds no longer than this call.
        var call: ToldCall?
    }

    @TaskLocal private static var bound: Bound?
    /// Whether any was ever set: a program that does not trace never looks for one.
    private static let isUsed = Atomic<Bool>(false)

    /// Written once: who reads it on another core does so from its own memory then.
    private static func noteUse() {
        if !isUsed.load(ordering: .relaxed) { isUsed.store(true, ordering: .relaxed) }
    }

    /// That of the task: what calls made now are part of. Nil for none. In a method at a server that traces, that of its call, until it is
    /// answered: what a task does that goes on behind it is no part of its trace.
    public static var current: TraceContext? {
        guard isUsed.load(ordering: .relaxed), let bound, bound.call?.isOver != true else { return nil }
        return bound.context
    }

    /// Makes what `body` does part of a trace; of none when it is nil.
    public static func with<Result>(
        _ context: TraceContext?, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        noteUse()
        return try await $bound.withValue(Bound(context: context), operation: body, isolation: isolation)
    }

    /// The same for what does not wait, and for tasks that it starts.
    public static func with<Result>(_ context: TraceContext?, _ body: () throws -> Result) rethrows -> Result {
        noteUse()
        return try $bound.withValue(Bound(context: context), operation: body)
    }

    /// The same, no longer than a call: also for tasks that `body` starts.
    static func with<Result>(
        _ context: TraceContext?, until call: ToldCall, _ body: () throws -> Result
    ) rethrows -> Result {
        noteUse()
        return try $bound.withValue(Bound(context: context, call: call), operation: body)
    }
}

/// Which of many begin a trace.
package final class TraceSampling: Sendable {
    /// Below which a random number has to be; 0 for none.
    private let threshold = Atomic<UInt64>(0)
    private let numbers = RandomNumbers()

    package init(ratio: Double = 0) { set(ratio) }

    /// - Parameter ratio: from 0, none, to 1, all.
    package func set(_ ratio: Double) {
        threshold.store(
            ratio >= 1 ? .max : ratio > 0 ? UInt64(ratio * 0x1p64) : 0, ordering: .relaxed)
    }

    /// Whether this one does.
    package func next() -> Bool {
        let threshold = threshold.load(ordering: .relaxed)
        guard threshold > 0 else { return false }
        guard threshold < .max else { return true }
        return numbers.next() < threshold
    }

    /// How many do not until the next that does: between none and so many that it is right on average.
    fileprivate func gap(_ threshold: UInt64) -> Int {
        guard threshold > 0 else { return .max }
        guard threshold < .max else { return 0 }
        let ratio = Double(threshold) / 0x1p64
        // Twice the average at most, and one more as often as the rest of it says.
        let average = min((1 - ratio) / ratio, 1e15)
        let most = (2 * average).rounded(.down)
        let rest = average - most / 2
        let drawn = UInt64(most) == 0 ? 0 : numbers.next() % (UInt64(most) + 1)
        return Int(drawn) + (Double(numbers.next()) / 0x1p64 < rest ? 1 : 0)
    }

    /// Counts down from one that begins a trace to the next, for who has all calls of a reactor: so the others cost a subtraction.
    package struct Countdown {
        private var threshold: UInt64 = 0
        private var left = Int.max

        package init() {}

        /// Whether this one does.
        @inline(__always)
        package mutating func next(_ sampling: TraceSampling) -> Bool {
            if sampling.threshold.load(ordering: .relaxed) == threshold, left > 0 {
                left &-= 1
                return false
            }
            return draw(sampling)
        }

        @inline(never)
        private mutating func draw(_ sampling: TraceSampling) -> Bool {
            let now = sampling.threshold.load(ordering: .relaxed)
            let isDue = now == threshold
            threshold = now
            left = sampling.gap(now)
            if isDue { return true }
            // It was set anew.
            guard left > 0 else { return next(sampling) }
            left -= 1
            return false
        }
    }
}

/// Random numbers without questions to the system, but for where they begin: for what is wanted at each call, and is no secret.
private final class RandomNumbers: Sendable {
    private let state = Atomic<UInt64>(.random(in: 0 ... .max))

    func next() -> UInt64 {
        var mixed = state.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
