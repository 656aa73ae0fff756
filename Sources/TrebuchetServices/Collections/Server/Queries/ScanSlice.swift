internal import Platform

/// The time slice of a scan, after which other work gets its turn.
struct ScanSlice {
    static let duration: UInt64 = 500_000

    private let end: UInt64
    private var steps = 0
    private static let stepsBetweenChecks = 16
    private static let bytesOfStep = 4 << 10

    init() { end = MonotonicClock.now &+ Self.duration }

    /// The time since its start in nanoseconds.
    var elapsed: UInt64 { MonotonicClock.now &- (end &- Self.duration) }

    /// Creates a slice that ends after a number of steps; for tests.
    init(steps: Int) {
        end = 0
        self.steps = Self.stepsBetweenChecks - steps
    }

    /// True at the end of the slice; for use between long steps.
    var isOver: Bool { MonotonicClock.now >= end }

    /// Returns whether the slice has ended; called once for each scanned document, with nil for an empty slot. A large document
    /// counts as several steps.
    mutating func isOver(after row: DocumentRow?) -> Bool {
        isOver(afterSteps: 1 + (row?.byteCount ?? 0) / Self.bytesOfStep)
    }

    /// Returns whether the slice has ended. The clock is read when enough steps were counted.
    mutating func isOver(afterSteps count: Int) -> Bool {
        steps += count
        guard steps >= Self.stepsBetweenChecks else { return false }
        steps = 0
        return MonotonicClock.now >= end
    }
}
