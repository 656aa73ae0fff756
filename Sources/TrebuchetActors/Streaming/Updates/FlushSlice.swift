internal import Platform
internal import Transports

/// How long a reactor sends updates before others have their turn: the clock is read once in 64 sends, so small audiences
/// never ask for the time.
struct FlushSlice {
    static let duration = Duration.milliseconds(1)
    private static let sendsBetweenLooks = 64

    private var untilLook = sendsBetweenLooks
    private var until: UInt64 = 0
    /// Whether the rest has to wait for the next turn.
    private(set) var isOver = false

    /// Notes that a subscriber was sent so many messages.
    mutating func didSend(_ messages: Int) {
        untilLook -= 1 + messages
        guard untilLook <= 0 else { return }
        untilLook = Self.sendsBetweenLooks
        let now = MonotonicClock.now
        if until == 0 { until = now &+ Self.duration.nanoseconds }
        isOver = now >= until
    }
}
