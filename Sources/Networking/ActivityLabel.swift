/// What a reactor is doing, in words for the watchdog. Made once for each kind of work and never freed, so that another
/// thread may read it at any time.
package final class ActivityLabel: Sendable {
    package let text: String

    private init(_ text: String) { self.text = text }

    /// Lives as long as the process: one for each method of a type, not one for each call.
    package static func immortal(_ text: String) -> ActivityLabel {
        let label = ActivityLabel(text)
        _ = Unmanaged.passRetained(label)
        return label
    }

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
