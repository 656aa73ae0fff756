internal import TrebuchetActors

/// The recording budget for each tenth of a second: events beyond it are not recorded and cost nothing. Inspection therefore
/// does not slow down a busy server, and is complete at an idle one.
///
/// A unit is about half a microsecond of processor time, so the budget is about one hundredth of a processor.
struct RecorderRateLimiter {
    private static let window: UInt64 = 100_000_000
    static let most = 2_000
    /// The cost of one call from its start to its end, since several queries process it.
    private static let callCost = 5
    /// The bytes of a state that are encoded per unit.
    private static let bytesPerUnit = 64.0
    /// The number of windows whose byte budget may be used at once, so that large states that seldom change are shown.
    private static let windowsAtOnce = 10.0

    private var began: UInt64 = 0
    private let all: Int
    private var left: Int
    /// The remaining budget for encoding values for the inspector only. In units, as of `filledAt`.
    private var bytes: Double
    private var filledAt: UInt64 = 0
    private(set) var isUsedUp = false
    /// The number of times that the budget was used up and calls were omitted.
    private(set) var pauses: UInt64 = 0
    /// Whether the encoded bytes exceed the budget. Until the debt is settled, values are omitted and calls are still recorded.
    private(set) var isOverBudget = false

    init(_ all: Int = RecorderRateLimiter.most) {
        (self.all, left) = (all, all)
        bytes = Self.windowsAtOnce * Double(all)
    }

    /// The budgets that are used up, each with the time until it is refilled, in nanoseconds.
    struct UsedUp {
        /// The budget for all events.
        var events: UInt64?
        /// The budget for values encoded for the inspector only.
        var values: UInt64?
    }

    /// - Returns: the budgets that this event has used up; each is reported once.
    mutating func consume(_ event: ServerEvent, at now: UInt64) -> UsedUp {
        if now &- began >= Self.window { (began, left) = (now, all) }
        bytes = min(
            Self.windowsAtOnce * Double(all), bytes + Double(now &- filledAt) / Double(Self.window) * Double(all))
        filledAt = now
        switch event {
        case .updateDelivered, .versionsConflated, .subscriberFellBehind: left -= 1
        case .versionCreated(let version):
            left -= Self.callCost + version.calls.count / 8
            charge(bytes: version.bytesForReaders)
        default: left -= Self.callCost
        }
        var usedUp = UsedUp()
        if left <= 0 {
            isUsedUp = true
            pauses += 1
            usedUp.events = max(1, Self.window - min(Self.window, now &- began))
        }
        if bytes < 0, !isOverBudget {
            isOverBudget = true
            usedUp.values = max(1, UInt64(min(-bytes / Double(all) * Double(Self.window), 1e10)))
        }
        return usedUp
    }

    /// Permits the encoding of values again.
    mutating func settle() { isOverBudget = false }

    /// Charges the encoding of a state for the inspector. Does not itself stop recording.
    mutating func charge(bytes count: Int) { bytes -= Double(count) / Self.bytesPerUnit }

    mutating func renew() {
        (left, isUsedUp) = (all, false)
        began = 0
    }
}
