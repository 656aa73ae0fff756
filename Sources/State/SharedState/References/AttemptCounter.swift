/// Numbers attempts that may overlap, and determines whose outcome counts.
struct AttemptCounter: Sendable {
    private(set) var lastBegun: UInt64 = 0
    private var lastEnded: UInt64 = 0
    private(set) var pendingCount = 0

    mutating func startAttempt() -> UInt64 {
        lastBegun += 1
        pendingCount += 1
        return lastBegun
    }

    /// Ends an attempt. Returns false when an attempt that began later has already ended.
    mutating func endAttempt(_ number: UInt64) -> Bool {
        pendingCount -= 1
        guard number > lastEnded else { return false }
        lastEnded = number
        return true
    }
}
