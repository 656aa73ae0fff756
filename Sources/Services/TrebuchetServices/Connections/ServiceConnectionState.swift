internal import Platform
internal import Synchronization
internal import Trebuchet

/// The state of one connection in a service: its uses, its rates, and the actors to notify when its authorization
/// changes. One object serves all actors of the service.
final class ServiceConnectionState<Followed: AnyObject & Sendable, Rate: Hashable & Sendable>: Sendable {
    private struct Weak {
        weak var actor: Followed?
    }

    private struct Usage {
        var uses = 0
        /// The stored bytes that count for the connection.
        var storedBytes = 0
        /// Actors to notify when the connection's principal or roles change. Freed actors are removed when the number exceeds
        /// `maximumObserved`.
        var registeredActors: [ObjectIdentifier: Weak] = [:]
        var maximumObserved = 64
        var buckets: [Rate: (limit: RateLimit, bucket: TokenBucket)] = [:]
    }

    /// Above this number, full buckets are removed: they are equal to new ones.
    private static var maximumBuckets: Int { 64 }

    let connection: CallerConnection
    let host: CallerHost?
    /// The maximum number of concurrent uses: joined rooms or open queries.
    let maximumUses: Int
    private let usage = Mutex(Usage())

    init(_ connection: CallerConnection, maximumUses: Int) {
        self.connection = connection
        host = connection.host
        self.maximumUses = maximumUses
    }

    /// The principal and host whose quotas the connection uses.
    var holder: QuotaHolder { QuotaHolder(principal: connection.principal?.id, host: host) }

    /// Takes `count` calls from the bucket of `rate`. Returns nil when they may be made now, else the time to wait in
    /// milliseconds.
    func consume(_ count: Int = 1, of rate: Rate, _ limit: RateLimit) -> Int? {
        let now = MonotonicClock.now
        return usage.withLock { usage in
            if usage.buckets.count > Self.maximumBuckets, usage.buckets[rate] == nil {
                usage.buckets = usage.buckets.filter { !$0.value.bucket.isFull(at: now) }
            }
            if usage.buckets[rate]?.limit != limit { usage.buckets[rate] = (limit, TokenBucket(limit, now: now)) }
            return usage.buckets[rate]?.bucket.consume(count, at: now)
        }
    }

    /// Reserves one use; returns false at the limit.
    func reserveUse() -> Bool {
        usage.withLock { usage in
            guard usage.uses < maximumUses else { return false }
            usage.uses += 1
            return true
        }
    }

    func releaseUse() { usage.withLock { $0.uses -= 1 } }

    /// Counts a change of the bytes that are stored for the connection; returns false, and counts nothing, when it grows above
    /// the limit.
    func countStoredBytes(_ change: Int, limit: Int = .max) -> Bool {
        usage.withLock { usage in
            guard change <= 0 || usage.storedBytes + change <= limit else { return false }
            usage.storedBytes += change
            return true
        }
    }

    /// The bytes that are stored for the connection.
    var storedBytes: Int { usage.withLock { $0.storedBytes } }

    /// Registers an actor to notify when the connection's principal or its roles change.
    func registerActor(_ actor: Followed) {
        usage.withLock { usage in
            usage.registeredActors[ObjectIdentifier(actor)] = Weak(actor: actor)
            guard usage.registeredActors.count > usage.maximumObserved else { return }
            usage.registeredActors = usage.registeredActors.filter { $0.value.actor != nil }
            usage.maximumObserved = max(64, 2 * usage.registeredActors.count)
        }
    }

    func unregisterActor(_ actor: Followed) { usage.withLock { $0.registeredActors[ObjectIdentifier(actor)] = nil } }

    /// The registered actors that still exist.
    var registeredActors: [Followed] { usage.withLock { $0.registeredActors.values.compactMap(\.actor) } }
}

extension ServiceConnectionState: Hashable {
    static func == (a: ServiceConnectionState, b: ServiceConnectionState) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
