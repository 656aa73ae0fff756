internal import Platform
internal import Transports

/// The time slice in which a reactor sends updates before it does other work. The clock is read once in 64 sends, so passes
/// over few subscribers never read it.
struct FlushBudget {
    static let duration = Duration.milliseconds(1)
    private static let sendsBetweenChecks = 64

    private var sendsUntilCheck = sendsBetweenChecks
    private var until: UInt64 = 0
    /// Set when the rest has to wait for the next turn.
    private(set) var isOver = false

    /// Records that a subscriber was sent this number of messages.
    mutating func didSend(_ messages: Int) {
        sendsUntilCheck -= 1 + messages
        guard sendsUntilCheck <= 0 else { return }
        sendsUntilCheck = Self.sendsBetweenChecks
        let now = MonotonicClock.now
        if until == 0 { until = now &+ Self.duration.nanoseconds }
        isOver = now >= until
    }
}
