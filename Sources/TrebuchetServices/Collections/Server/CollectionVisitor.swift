internal import Platform
internal import Synchronization
internal import Trebuchet

/// A connection as collections see it: how fast it reads and writes, and how many queries it has open. One for all collections.
final class CollectionVisitor: Sendable {
    private struct Observed {
        weak var view: CollectionView?
    }

    private struct Usage {
        var queries = 0
        /// Views whose streams it has, or had: those that are gone are forgotten when there are so many.
        var observed: [ObjectIdentifier: Observed] = [:]
        var mostObserved = 64
        var writes: TokenBucket
        var reads: TokenBucket
        /// Of collections with a rate of their own, by their names.
        var collections: [String: (limit: RateLimit, bucket: TokenBucket)] = [:]

        mutating func takeWrites(_ count: Int, to collection: String, _ limit: RateLimit, at now: UInt64) -> Int? {
            if collections.count > CollectionVisitor.bucketsKept, collections[collection] == nil {
                collections = collections.filter { !$0.value.bucket.isFull(at: now) }
            }
            if collections[collection]?.limit != limit {
                collections[collection] = (limit, TokenBucket(limit, now: now))
            }
            return collections[collection]?.bucket.take(count, at: now)
        }
    }

    /// Beyond that many, full buckets are let go: they are as new ones.
    private static let bucketsKept = 64

    let connection: CallerConnection
    let host: CallerHost?
    private let all: WriteRates
    private let queryLimit: Int
    private let usage: Mutex<Usage>

    init(_ connection: CallerConnection, _ all: WriteRates, limits: CollectionLimits) {
        self.connection = connection
        self.all = all
        host = connection.host
        queryLimit = limits.queriesPerConnection
        let now = MonotonicClock.now
        usage = Mutex(Usage(writes: TokenBucket(limits.writes, now: now), reads: TokenBucket(limits.reads, now: now)))
    }

    /// Nil when so many writes may be made; else the time to wait for that, in milliseconds. The connection first: who is over its
    /// own rate takes nothing from others.
    ///
    /// - Parameter limit: that of the collection, if it has one of its own.
    func takeWrites(_ count: Int, to collection: String, _ limit: RateLimit?) -> Int? {
        let now = MonotonicClock.now
        let wait = usage.withLock { usage -> Int? in
            if let limit, let wait = usage.takeWrites(count, to: collection, limit, at: now) { return wait }
            return usage.writes.take(count, at: now)
        }
        if let wait { return wait }
        return all.take(count, connection.principal?.id, host, at: now)
    }

    /// Takes one of the calls that open, close and get queries.
    func takeRead() throws(CollectionError) {
        let now = MonotonicClock.now
        if let wait = usage.withLock({ $0.reads.take(at: now) }) { throw .rateLimited(retryAfterMilliseconds: wait) }
    }

    /// Whose share of queries it uses.
    var holder: Holder { Holder(principal: connection.principal?.id, host: host) }

    func openQuery() throws(CollectionError) {
        let isAllowed = usage.withLock { usage in
            guard usage.queries < queryLimit else { return false }
            usage.queries += 1
            return true
        }
        guard isAllowed else { throw .tooManyQueries(limit: queryLimit) }
    }

    func closeQuery() { usage.withLock { $0.queries -= 1 } }

    /// Notes a view that it observes, so that it loses it with the right to read it.
    func observes(_ view: CollectionView) {
        usage.withLock { usage in
            usage.observed[ObjectIdentifier(view)] = Observed(view: view)
            guard usage.observed.count > usage.mostObserved else { return }
            usage.observed = usage.observed.filter { $0.value.view != nil }
            usage.mostObserved = max(64, 2 * usage.observed.count)
        }
    }

    /// Those that are there.
    var observed: [CollectionView] { usage.withLock { $0.observed.values.compactMap(\.view) } }
}
