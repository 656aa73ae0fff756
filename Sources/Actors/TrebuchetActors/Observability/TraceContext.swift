package import Bytes
internal import Synchronization

/// A trace and a span in it: the content of the W3C `traceparent` field.
///
///     try await TraceContext.with(TraceContext(traceparent)) { try await todos.addTodo(title: "Milk") }
///
/// Calls within `with` are part of the trace, as is the work that they cause at a server that traces.
public struct TraceContext: Sendable, Hashable {
    private let high: UInt64
    private let low: UInt64
    /// The ID of the span.
    package let span: UInt64
    /// A Boolean value that indicates whether the trace is sampled. The creator of the trace decides this for all participants.
    public let isSampled: Bool

    private init(high: UInt64, low: UInt64, span: UInt64, isSampled: Bool) {
        (self.high, self.low, self.span) = (high, low, span)
        self.isSampled = isSampled
    }

    /// Creates a new trace.
    public init(isSampled: Bool = true) {
        self.init(high: Self.newID, low: Self.newID, span: Self.newID, isSampled: isSampled)
    }

    /// Parses a `traceparent` such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; nil if it is invalid.
    public init?(_ traceparent: String) {
        var text = traceparent
        guard let context = text.withUTF8({ Self(UnsafeRawBufferPointer($0)) }) else { return nil }
        self = context
    }

    /// Parses a `traceparent` from bytes; nil if it is invalid.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        let dash = UInt8(ascii: "-")
        guard bytes.count >= 55, bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
            let version = Self.number(bytes, 0..<2), version != 0xFF,
            // Later versions may append fields.
            bytes.count == 55 || version > 0 && bytes[55] == dash,
            let high = Self.number(bytes, 3..<19), let low = Self.number(bytes, 19..<35), high | low != 0,
            let span = Self.number(bytes, 36..<52), span != 0, let flags = Self.number(bytes, 53..<55)
        else { return nil }
        self.init(high: high, low: low, span: span, isSampled: flags & 1 == 1)
    }

    /// The value of the `traceparent` field.
    public var traceparent: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    /// 32 hexadecimal digits, equal for all parts of the trace.
    public var traceID: String { Self.digits(high) + Self.digits(low) }

    /// 16 hexadecimal digits.
    public var spanID: String { Self.digits(span) }

    /// A new span in the same trace.
    package var child: TraceContext {
        TraceContext(high: high, low: low, span: Self.newID, isSampled: isSampled)
    }

    /// Generates IDs without a system call for each. They are not secret.
    private static let numbers = FastRandomGenerator()

    /// A random ID, never 0.
    private static var newID: UInt64 { max(1, numbers.next()) }

    private static func number(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UInt64? {
        var value: UInt64 = 0
        for byte in bytes[range] {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            // Lower case only.
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

    /// Passes 16 digits with their indices to `body`.
    @inline(__always)
    private static func write(_ value: UInt64, _ body: (Int, UInt8) -> Void) {
        for index in 0..<16 {
            let digit = UInt8(truncatingIfNeeded: value >> UInt64(60 - 4 * index)) & 15
            body(index, digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
    }

    /// Appends `traceID` as ASCII digits.
    package func appendTraceID(to buffer: inout ByteBuffer) {
        Self.append(high, to: &buffer)
        Self.append(low, to: &buffer)
    }

    /// Appends 16 ASCII digits.
    package static func append(_ value: UInt64, to buffer: inout ByteBuffer) {
        buffer.append(count: 16) { target in write(value) { target[$0] = $1 } }
    }

    // MARK: Current context

    /// The context of a task.
    private struct Bound: Sendable {
        let context: TraceContext?
        /// The call that bounds the lifetime of the context.
        var call: ObservedCall?
    }

    @TaskLocal private static var bound: Bound?
    /// Set with the first context; a program without traces skips the lookup.
    private static let isUsed = Atomic<Bool>(false)

    /// Written once, so that readers on other cores have it in their caches.
    private static func recordUse() {
        if !isUsed.load(ordering: .relaxed) { isUsed.store(true, ordering: .relaxed) }
    }

    /// The context of the current task, which calls made now become part of; nil for none. In a method at a server that traces,
    /// it is the context of the call until the call is answered. A task that outlives the call has none afterwards.
    public static var current: TraceContext? {
        guard isUsed.load(ordering: .relaxed), let bound, bound.call?.isOver != true else { return nil }
        return bound.context
    }

    /// Runs `body` as part of a trace, or of none if `context` is nil.
    public static func with<Result>(
        _ context: TraceContext?, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        recordUse()
        return try await $bound.withValue(Bound(context: context), operation: body, isolation: isolation)
    }

    /// Runs a synchronous `body` as part of a trace, or of none if `context` is nil. Tasks that it starts inherit the context.
    public static func with<Result>(_ context: TraceContext?, _ body: () throws -> Result) rethrows -> Result {
        recordUse()
        return try $bound.withValue(Bound(context: context), operation: body)
    }

    /// Runs `body` as part of a trace until `call` ends, which also applies to tasks that `body` starts.
    static func with<Result>(
        _ context: TraceContext?, until call: ObservedCall, _ body: () throws -> Result
    ) rethrows -> Result {
        recordUse()
        return try $bound.withValue(Bound(context: context, call: call), operation: body)
    }
}

/// The random selection of calls that start a trace.
package final class TraceSampling: Sendable {
    /// The exclusive upper bound of random numbers that select a call; 0 for none.
    private let threshold = Atomic<UInt64>(0)
    private let numbers = FastRandomGenerator()

    package init(ratio: Double = 0) { set(ratio) }

    /// Sets the share of calls that start a trace.
    ///
    /// - Parameter ratio: from 0, none, to 1, all.
    package func set(_ ratio: Double) {
        threshold.store(
            ratio >= 1 ? .max : ratio > 0 ? UInt64(ratio * 0x1p64) : 0, ordering: .relaxed)
    }

    /// Returns whether the next call starts a trace.
    package func next() -> Bool {
        let threshold = threshold.load(ordering: .relaxed)
        guard threshold > 0 else { return false }
        guard threshold < .max else { return true }
        return numbers.next() < threshold
    }

    /// Returns a random number of calls to skip until the next traced one, with the right average.
    fileprivate func gap(_ threshold: UInt64) -> Int {
        guard threshold > 0 else { return .max }
        guard threshold < .max else { return 0 }
        let ratio = Double(threshold) / 0x1p64
        // Uniform between 0 and at most twice the average, plus one with the probability of the remainder.
        let average = min((1 - ratio) / ratio, 1e15)
        let most = (2 * average).rounded(.down)
        let rest = average - most / 2
        let drawn = UInt64(most) == 0 ? 0 : numbers.next() % (UInt64(most) + 1)
        return Int(drawn) + (Double(numbers.next()) / 0x1p64 < rest ? 1 : 0)
    }

    /// Counts down to the next call that starts a trace, for the calls of one reactor. A call that starts none costs one
    /// subtraction.
    package struct Countdown {
        private var threshold: UInt64 = 0
        private var left = Int.max

        package init() {}

        /// Returns whether the next call starts a trace.
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
            // The ratio has changed.
            guard left > 0 else { return next(sampling) }
            left -= 1
            return false
        }
    }
}

/// A random number generator that reads from the system only for its initial state: for values that each call needs and that
/// are not secret.
private final class FastRandomGenerator: Sendable {
    private let state = Atomic<UInt64>(.random(in: 0 ... .max))

    func next() -> UInt64 {
        var mixed = state.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
