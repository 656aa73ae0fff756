internal import Transports

extension ActivityLabel {
    static let sockets = immortal("reading from connections")
    static let line = immortal("going on with connections that have much to say")
    static let jobs = immortal("tasks, actors and work sent from other threads")
    static let timers = immortal("timers")
    static let endOfTurn = immortal("sending at the end of a turn")
}

/// A reactor that did not get on.
package struct ReactorStall: Sendable, CustomStringConvertible {
    /// The name of the reactor.
    package let reactor: String
    /// What it was doing.
    package let activity: String
    /// How long it has been held, or was in the end; to within 25 ms.
    package let milliseconds: Int
    /// Told twice: when it is noticed, and when it is over.
    package let isOver: Bool

    package var description: String {
        isOver
            ? "\(reactor) was held for \(milliseconds) ms: \(activity)"
            : "\(reactor) is held, for \(milliseconds) ms so far: \(activity)"
    }
}
