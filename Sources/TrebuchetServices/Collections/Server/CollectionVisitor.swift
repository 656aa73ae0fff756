internal import Networking
internal import Synchronization
internal import Trebuchet

/// A connection as collections see it: how fast it writes, and how many queries it has open. One for all collections.
final class CollectionVisitor: Sendable {
    private struct Usage {
        var queries = 0
        var writes: TokenBucket
    }

    let connection: CallerConnection
    private let queryLimit: Int
    private let usage: Mutex<Usage>

    init(_ connection: CallerConnection, limits: CollectionLimits) {
        self.connection = connection
        queryLimit = limits.queriesPerConnection
        usage = Mutex(Usage(writes: TokenBucket(limits.writes, now: MonotonicClock.now)))
    }

    /// Nil when so many writes may be made; else the time to wait for that, in milliseconds.
    func takeWrites(_ count: Int) -> Int? {
        let now = MonotonicClock.now
        return usage.withLock { $0.writes.take(count, at: now) }
    }

    func openQuery() throws(CollectionError) {
        let isAllowed = usage.withLock { usage in
            guard usage.queries < queryLimit else { return false }
            usage.queries += 1
            return true
        }
        guard isAllowed else { throw .tooManyQueries(limit: queryLimit) }
    }

    func closeQuery() { usage.withLock { $0.queries -= 1 } }
}
