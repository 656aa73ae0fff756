internal import Platform
internal import Synchronization
internal import Trebuchet

/// The state of one connection in a service: its used places, its rates, and the actors to notify when its authorization
/// changes. One object serves all actors of the service.
final class ServiceConnectionState<Followed: AnyObject & Sendable, Rate: Hashable & Sendable>: Sendable {
    private struct Weak {
        weak var part: Followed?
    }

    private struct Usage {
        var places = 0
        /// Actors to notify when the connection's principal or roles change. Freed actors are removed when the number exceeds
        /// `maximumObserved`.
        var followed: [ObjectIdentifier: Weak] = [:]
        var maximumObserved = 64
        var buckets: [Rate: (limit: RateLimit, bucket: TokenBucket)] = [:]
    }

    /// Above this number, full buckets are removed: they are equal to new ones.
    private static var bucketsKept: Int { 64 }

    let connection: CallerConnection
    let host: CallerHost?
    /// The maximum number of places at once: joined rooms or open queries.
    let placeLimit: Int
    private let usage = Mutex(Usage())

    init(_ connection: CallerConnection, places: Int) {
        self.connection = connection
        host = connection.host
        placeLimit = places
    }

    /// The principal and host whose quotas the connection uses.
    var holder: QuotaHolder { QuotaHolder(principal: connection.principal?.id, host: host) }

    /// Takes `count` calls from the bucket of `rate`. Returns nil when they may be made now, else the time to wait in
    /// milliseconds.
    func consume(_ count: Int = 1, of rate: Rate, _ limit: RateLimit) -> Int? {
        let now = MonotonicClock.now
        return usage.withLock { usage in
            if usage.buckets.count > Self.bucketsKept, usage.buckets[rate] == nil {
                usage.buckets = usage.buckets.filter { !$0.value.bucket.isFull(at: now) }
            }
            if usage.buckets[rate]?.limit != limit { usage.buckets[rate] = (limit, TokenBucket(limit, now: now)) }
            return usage.buckets[rate]?.bucket.consume(count, at: now)
        }
    }

    /// Takes one place; returns false when all are in use.
    func enter() -> Bool {
        usage.withLock { usage in
            guard usage.places < placeLimit else { return false }
            usage.places += 1
            return true
        }
    }

    func leave() { usage.withLock { $0.places -= 1 } }

    /// Registers an actor to notify when the connection's principal or its roles change.
    func follows(_ part: Followed) {
        usage.withLock { usage in
            usage.followed[ObjectIdentifier(part)] = Weak(part: part)
            guard usage.followed.count > usage.maximumObserved else { return }
            usage.followed = usage.followed.filter { $0.value.part != nil }
            usage.maximumObserved = max(64, 2 * usage.followed.count)
        }
    }

    func follows(noMore part: Followed) { usage.withLock { $0.followed[ObjectIdentifier(part)] = nil } }

    /// The registered actors that still exist.
    var followed: [Followed] { usage.withLock { $0.followed.values.compactMap(\.part) } }
}

extension ServiceConnectionState: Hashable {
    static func == (a: ServiceConnectionState, b: ServiceConnectionState) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
