internal import Transports

extension ActivityLabel {
    static let sockets = permanent("reading from connections")
    static let line = permanent("resuming connections with more input")
    static let jobs = permanent("tasks, actors and work sent from other threads")
    static let timers = permanent("timers")
    static let endOfTurn = permanent("sending output at the end of a turn")
}

/// A turn of a reactor that took too long.
package struct ReactorStall: Sendable, CustomStringConvertible {
    /// The name of the reactor.
    package let reactor: String
    /// The activity of the reactor.
    package let activity: String
    /// The duration so far, or the final duration; precise to 25 ms.
    package let milliseconds: Int
    /// True in the second report, when the turn is over; false when it is detected.
    package let isOver: Bool

    package var description: String {
        isOver
            ? "\(reactor) was blocked for \(milliseconds) ms: \(activity)"
            : "\(reactor) is blocked, for \(milliseconds) ms so far: \(activity)"
    }
}
