internal import Networking

/// How long a reactor sends updates before others have their turn: the clock is read once in 64 sends, so small audiences
/// never ask for the time.
struct FlushSlice {
    static let duration = Duration.milliseconds(1)
    private static let sendsBetweenLooks = 64

    private var sends = 0
    private var until: UInt64 = 0
    /// Whether the rest has to wait for the next turn.
    private(set) var isOver = false

    /// Notes one send.
    mutating func didSend() {
        sends &+= 1
        guard sends % Self.sendsBetweenLooks == 0 else { return }
        let now = MonotonicClock.now
        if until == 0 { until = now &+ Self.duration.nanoseconds }
        isOver = now >= until
    }
}
