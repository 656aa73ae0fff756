internal import Platform
internal import Transports

/// The time slice in which a reactor sends updates before it does other work. The clock is read once in 64 sends or 64 KiB, so
/// passes over few subscribers never read it.
struct FlushBudget {
    static let duration = Duration.milliseconds(1)
    private static let sendsBetweenChecks = 64
    private static let bytesBetweenChecks: UInt64 = 64 << 10
    /// The number of bytes that take a nanosecond, at the least, before the first reading of the clock.
    private static let bytesPerNanosecond: UInt64 = 4

    private var sendsUntilCheck = sendsBetweenChecks
    private var bytes: UInt64 = 0
    private var until: UInt64 = 0
    /// Set when the rest has to wait for the next turn.
    private(set) var isOver = false

    /// Records that a subscriber was sent this number of messages, with this number of bytes.
    mutating func didSend(_ messages: Int, bytes more: UInt64) {
        sendsUntilCheck -= 1 + messages
        bytes &+= more
        guard sendsUntilCheck <= 0 || bytes >= Self.bytesBetweenChecks else { return }
        let now = MonotonicClock.now
        if until == 0 {
            until = now &+ Self.duration.nanoseconds &- min(bytes / Self.bytesPerNanosecond, Self.duration.nanoseconds)
        }
        (sendsUntilCheck, bytes) = (Self.sendsBetweenChecks, 0)
        isOver = now >= until
    }
}
