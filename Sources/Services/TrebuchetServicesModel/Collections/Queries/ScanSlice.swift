internal import Platform

/// A time slice of long work, after which other work gets its turn.
package struct ScanSlice {
    /// Nanoseconds.
    package static let duration: UInt64 = 500_000

    private let start: UInt64
    private let end: UInt64
    private var steps = 0
    private static let stepsBetweenChecks = 16

    package init(nanoseconds: UInt64 = Self.duration) {
        start = MonotonicClock.now
        end = start &+ nanoseconds
    }

    private init(end: UInt64) { (start, self.end) = (MonotonicClock.now, end) }

    /// A longer slice, for work that many callers wait for.
    package static var shared: ScanSlice { ScanSlice(nanoseconds: 4 * duration) }

    /// A slice without end.
    package static var unlimited: ScanSlice { ScanSlice(end: .max) }

    /// The time since its start in nanoseconds.
    package var elapsed: UInt64 { MonotonicClock.now &- start }

    /// Creates a slice that ends after a number of steps; for tests.
    init(steps: Int) {
        (start, end) = (0, 0)
        self.steps = Self.stepsBetweenChecks - steps
    }

    /// True at the end of the slice; for use between long steps.
    package var isOver: Bool { MonotonicClock.now >= end }

    /// Returns whether the slice has ended. The clock is read when enough steps were counted.
    package mutating func isOver(afterSteps count: Int) -> Bool {
        steps += count
        guard steps >= Self.stepsBetweenChecks else { return false }
        steps = 0
        return MonotonicClock.now >= end
    }
}
