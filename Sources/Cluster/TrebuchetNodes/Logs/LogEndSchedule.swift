internal import Platform

/// The times at which a node compares the ends of its logs with the coordination store: after each new connection, and again when
/// slots that lost their owners meanwhile have new ones. Names for which the store did not respond are retried alone, with a backoff.
///
/// Pure: the times, in nanoseconds, are arguments.
struct LogEndSchedule {
    /// A comparison that is due.
    struct Check: Equatable {
        /// The actors of the logs; nil for all known ones.
        var names: [String]?
        var isSettled = false
    }

    /// The number of connections at the last comparison that was begun.
    private var connections: Int
    /// The time from the last new connection until slots have owners again.
    private let settling: UInt64
    private let backoff: Backoff
    private var current: Check?
    private var settledAt: UInt64?
    private var failures = 0
    private var notBefore: UInt64 = 0

    init(connections: Int, settling: Duration, backoff: Backoff) {
        (self.connections, self.settling, self.backoff) = (connections, settling.nanoseconds, backoff)
    }

    /// Returns the comparison to make now; nil if none is due. The caller reports its end with `didCheck`.
    mutating func due(connections: Int, at now: UInt64) -> Check? {
        if connections != self.connections {
            self.connections = connections
            (current, settledAt) = (Check(), nil)
        } else if current == nil, let settled = settledAt, now >= settled {
            (current, settledAt) = (Check(isSettled: true), nil)
        }
        // A store that closes each new connection is not searched more often than one that does not respond.
        return now >= notBefore ? current : nil
    }

    /// - Parameter left: The names for which the coordination store did not respond.
    mutating func didCheck(left: [String], at now: UInt64) {
        guard left.isEmpty else {
            failures += 1
            notBefore = now &+ backoff.delay(afterFailures: failures).nanoseconds
            current?.names = left
            return
        }
        if current?.isSettled == false { settledAt = now &+ settling }
        (current, failures, notBefore) = (nil, 0, 0)
    }
}
