internal import Platform

/// The time that going through documents may take before others have their turn.
struct ScanSlice {
    static let duration: UInt64 = 2_000_000

    private let end: UInt64
    private var steps = 0
    private static let stepsBetweenLooks = 16
    private static let bytesOfStep = 4 << 10

    init() { end = MonotonicClock.now &+ Self.duration }

    /// One with an end of a test's, after so many steps.
    init(steps: Int) {
        end = 0
        self.steps = Self.stepsBetweenLooks - steps
    }

    /// To be asked where much is done between.
    var isOver: Bool { MonotonicClock.now >= end }

    /// To be asked once for each document that was looked at; nil for a place without one. A large one counts as several.
    mutating func isOver(after row: DocumentRow?) -> Bool {
        steps += 1 + (row?.byteCount ?? 0) / Self.bytesOfStep
        guard steps >= Self.stepsBetweenLooks else { return false }
        steps = 0
        return MonotonicClock.now >= end
    }
}
