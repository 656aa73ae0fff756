internal import Trebuchet

/// Token buckets of one rate, by key. Pure: the time is given, in milliseconds.
///
/// When it is full, full buckets are removed first, which are equal to new ones; then those of the owner with the most. So no
/// key is refused because of the use of others.
struct RateTable<Owner: Hashable, Key: Hashable> {
    private let limit: RateLimit
    private var buckets: FairEvictionTable<Owner, Key, TokenBucket>

    init(_ limit: RateLimit, capacity: Int) {
        self.limit = limit
        buckets = FairEvictionTable(capacity: capacity)
    }

    /// Returns the time until `key` may take one, in milliseconds; nil when it may now. Takes nothing.
    func wait(for key: Key, at now: Int64) -> Int? {
        guard var bucket = buckets[key] else { return nil }
        return bucket.consume(at: Self.nanoseconds(now))
    }

    /// Takes one, if available; see `wait`.
    ///
    /// - Parameter owner: the owner that the bucket counts for.
    mutating func consume(_ key: Key, of owner: Owner, at now: Int64) {
        let now = Self.nanoseconds(now)
        if var bucket = buckets[key] {
            _ = bucket.consume(at: now)
            return buckets.update(key, to: bucket)
        }
        if buckets.isFull { buckets.removeAll { $0.isFull(at: now) } }
        var bucket = TokenBucket(limit, now: now)
        _ = bucket.consume(at: now)
        buckets.insert(bucket, for: key, of: owner)
    }

    /// Restores the full bucket of `key`.
    mutating func remove(_ key: Key) { buckets.remove(key) }

    private static func nanoseconds(_ milliseconds: Int64) -> UInt64 { UInt64(max(0, milliseconds)) &* 1_000_000 }
}
