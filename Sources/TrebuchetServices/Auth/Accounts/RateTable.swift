internal import Trebuchet

/// How much of a rate each of many has used. Pure: the time is given, in milliseconds.
struct RateTable {
    private let limit: RateLimit
    private let capacity: Int
    private var buckets: [String: TokenBucket] = [:]
    /// Before this moment it is of no use to look for places that have become free.
    private var nextSweep: Int64 = 0

    init(_ limit: RateLimit, capacity: Int) {
        self.limit = limit
        self.capacity = capacity
    }

    /// Throws when `key` has used up its rate, or when there is no room to note it.
    mutating func take(_ key: String, at now: Int64) throws(AuthError) {
        let nanoseconds = UInt64(max(0, now)) &* 1_000_000
        if buckets[key] == nil, buckets.count >= capacity {
            let wait = Int64(max(1, 1000 / limit.callsPerSecond))
            guard now >= nextSweep else { throw .rateLimited(retryAfterMilliseconds: Int(wait)) }
            buckets = buckets.filter { !$0.value.isFull(at: nanoseconds) }
            if buckets.count >= capacity {
                nextSweep = now + 1000
                throw .rateLimited(retryAfterMilliseconds: Int(wait))
            }
        }
        let wait = buckets[key, default: TokenBucket(limit, now: nanoseconds)].take(at: nanoseconds)
        if let wait { throw .rateLimited(retryAfterMilliseconds: wait) }
    }
}
