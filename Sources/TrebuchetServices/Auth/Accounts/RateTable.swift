internal import Trebuchet

/// How much of a rate each of many has used. Pure: the time is given, in milliseconds.
///
/// When it is full, those go first that have back what they used, which are as good as new ones; then those of the owner
/// that has most. So nobody is refused because of what others have used.
struct RateTable<Owner: Hashable, Key: Hashable> {
    private let limit: RateLimit
    private var buckets: FairTable<Owner, Key, TokenBucket>

    init(_ limit: RateLimit, capacity: Int) {
        self.limit = limit
        buckets = FairTable(capacity: capacity)
    }

    /// The time after which `key` may take something, in milliseconds; nil when it may now. Takes nothing.
    func wait(for key: Key, at now: Int64) -> Int? {
        guard var bucket = buckets[key] else { return nil }
        return bucket.take(at: Self.nanoseconds(now))
    }

    /// Takes one, if there is one; see `wait`.
    ///
    /// - Parameter owner: on whose account it is noted.
    mutating func take(_ key: Key, of owner: Owner, at now: Int64) {
        let now = Self.nanoseconds(now)
        if var bucket = buckets[key] {
            _ = bucket.take(at: now)
            return buckets.update(key, to: bucket)
        }
        if buckets.isFull { buckets.removeAll { $0.isFull(at: now) } }
        var bucket = TokenBucket(limit, now: now)
        _ = bucket.take(at: now)
        buckets.insert(bucket, for: key, of: owner)
    }

    /// Gives `key` back what it has used.
    mutating func forget(_ key: Key) { buckets.remove(key) }

    private static func nanoseconds(_ milliseconds: Int64) -> UInt64 { UInt64(max(0, milliseconds)) &* 1_000_000 }
}
