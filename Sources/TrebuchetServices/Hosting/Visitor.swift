internal import Platform
internal import Synchronization
internal import Trebuchet

/// A connection as a service sees it: how much it uses, how fast it may go on, and what it loses with its rights. One for all parts of
/// the service.
final class Visitor<Followed: AnyObject & Sendable, Rate: Hashable & Sendable>: Sendable {
    private struct Weak {
        weak var part: Followed?
    }

    private struct Usage {
        var places = 0
        /// What hears of other rights of the connection: what is gone is forgotten when there is so much.
        var followed: [ObjectIdentifier: Weak] = [:]
        var mostFollowed = 64
        var buckets: [Rate: (limit: RateLimit, bucket: TokenBucket)] = [:]
    }

    /// Beyond that many, full buckets are let go: they are as new ones.
    private static var bucketsKept: Int { 64 }

    let connection: CallerConnection
    let host: CallerHost?
    /// Places that it may have at once: rooms that it is in, or queries that it has open.
    let placeLimit: Int
    private let usage = Mutex(Usage())

    init(_ connection: CallerConnection, places: Int) {
        self.connection = connection
        host = connection.host
        placeLimit = places
    }

    /// Whose share of what all use it has.
    var holder: Holder { Holder(principal: connection.principal?.id, host: host) }

    /// Nil when so many calls may be made now; else the time to wait for that, in milliseconds.
    func take(_ count: Int = 1, of rate: Rate, _ limit: RateLimit) -> Int? {
        let now = MonotonicClock.now
        return usage.withLock { usage in
            if usage.buckets.count > Self.bucketsKept, usage.buckets[rate] == nil {
                usage.buckets = usage.buckets.filter { !$0.value.bucket.isFull(at: now) }
            }
            if usage.buckets[rate]?.limit != limit { usage.buckets[rate] = (limit, TokenBucket(limit, now: now)) }
            return usage.buckets[rate]?.bucket.take(count, at: now)
        }
    }

    /// Takes one of its places; false when it has none left.
    func enter() -> Bool {
        usage.withLock { usage in
            guard usage.places < placeLimit else { return false }
            usage.places += 1
            return true
        }
    }

    func leave() { usage.withLock { $0.places -= 1 } }

    /// Notes what is to hear when somebody else is signed in over the connection, or with other roles.
    func follows(_ part: Followed) {
        usage.withLock { usage in
            usage.followed[ObjectIdentifier(part)] = Weak(part: part)
            guard usage.followed.count > usage.mostFollowed else { return }
            usage.followed = usage.followed.filter { $0.value.part != nil }
            usage.mostFollowed = max(64, 2 * usage.followed.count)
        }
    }

    func follows(noMore part: Followed) { usage.withLock { $0.followed[ObjectIdentifier(part)] = nil } }

    /// What is there of that.
    var followed: [Followed] { usage.withLock { $0.followed.values.compactMap(\.part) } }
}

extension Visitor: Hashable {
    static func == (a: Visitor, b: Visitor) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
