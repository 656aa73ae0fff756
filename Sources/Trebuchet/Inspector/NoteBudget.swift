internal import TrebuchetActors

/// How much is noted in a tenth of a second: what is beyond that costs nothing, and is not noted. So who looks does not slow down a server
/// that has much to do, and of one that has little sees all.
///
/// A unit is about half a microsecond of a processor, so that all of them are about a hundredth of its time.
struct NoteBudget {
    private static let window: UInt64 = 100_000_000
    static let most = 2_000
    /// Of one call, from its beginning to its end: it is looked at from many sides.
    private static let callCost = 5
    /// Of a state, that are encoded in a unit.
    private static let bytesPerUnit = 64.0
    /// Windows whose share of bytes may be encoded at once: a large state that seldom changes is seen all the same.
    private static let windowsAtOnce = 10.0

    private var began: UInt64 = 0
    private let all: Int
    private var left: Int
    /// What may still be encoded for who looks alone. In units, as it was at `filledAt`.
    private var bytes: Double
    private var filledAt: UInt64 = 0
    private(set) var isUsedUp = false
    /// How often it was: calls were left out then.
    private(set) var pauses: UInt64 = 0
    /// Whether more was encoded for who looks than there is: until that is made up for no values are, and calls are noted all the same.
    private(set) var isInDebt = false

    init(_ all: Int = NoteBudget.most) {
        (self.all, left) = (all, all)
        bytes = Self.windowsAtOnce * Double(all)
    }

    /// What is used up, and how long it is until there is more, in nanoseconds.
    struct UsedUp {
        /// Of all that happens.
        var events: UInt64?
        /// Of what is encoded for who looks alone.
        var values: UInt64?
    }

    /// - Returns: what is used up with this, once.
    mutating func take(_ event: ServerEvent, at now: UInt64) -> UsedUp {
        if now &- began >= Self.window { (began, left) = (now, all) }
        bytes = min(
            Self.windowsAtOnce * Double(all), bytes + Double(now &- filledAt) / Double(Self.window) * Double(all))
        filledAt = now
        switch event {
        case .delivered, .skipped, .behind: left -= 1
        case .versionMade(let version):
            left -= Self.callCost + version.calls.count / 8
            spend(bytes: version.bytesForReaders)
        default: left -= Self.callCost
        }
        var usedUp = UsedUp()
        if left <= 0 {
            isUsedUp = true
            pauses += 1
            usedUp.events = max(1, Self.window - min(Self.window, now &- began))
        }
        if bytes < 0, !isInDebt {
            isInDebt = true
            usedUp.values = max(1, UInt64(min(-bytes / Double(all) * Double(Self.window), 1e10)))
        }
        return usedUp
    }

    /// Values are encoded again for who looks.
    mutating func settle() { isInDebt = false }

    /// A state was encoded for who looks. By itself that stops nothing.
    mutating func spend(bytes count: Int) { bytes -= Double(count) / Self.bytesPerUnit }

    mutating func renew() {
        (left, isUsedUp) = (all, false)
        began = 0
    }
}
