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
    /// How often it was.
    private(set) var pauses: UInt64 = 0

    init(_ all: Int = NoteBudget.most) {
        (self.all, left) = (all, all)
        bytes = Self.windowsAtOnce * Double(all)
    }

    /// - Returns: when it is used up with this, how long it is until there is more, in nanoseconds.
    mutating func take(_ event: ServerEvent, at now: UInt64) -> UInt64? {
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
        guard left <= 0 || bytes < 0 else { return nil }
        isUsedUp = true
        pauses += 1
        let debt = max(0, -bytes) / Double(all) * Double(Self.window)
        return max(1, Self.window - min(Self.window, now &- began), UInt64(min(debt, 1e10)))
    }

    /// A state was encoded for who looks. By itself that stops nothing.
    mutating func spend(bytes count: Int) { bytes -= Double(count) / Self.bytesPerUnit }

    mutating func renew() {
        (left, isUsedUp) = (all, false)
        began = 0
    }
}
