internal import Synchronization

/// Token buckets by key, such as a principal or a host. The cost of a call does not depend on the number of keys. Each call
/// inspects a few other buckets and removes those that are full, since a full bucket equals a new one. Pure: the time is a parameter,
/// in nanoseconds.
///
/// A full table evicts buckets that are full soonest, so a flood of keys evicts its own. The next bucket of an evicted key is full. In
/// a table that inherits consumption, a key that is new to the full table starts with the consumption of the evicted keys, and with at
/// least one token. So one more token for an evicted key costs about as many calls of other keys as the table has keys.
package struct BucketTable<Key: Hashable> {
    /// One entry: a key with its bucket.
    private struct Slot {
        let key: Key
        var bucket: TokenBucket
    }

    /// The number of buckets that each call inspects. It exceeds the one bucket that a call can add, so full buckets cannot
    /// accumulate.
    private static var inspectionsPerCall: Int { 2 }
    /// The number of buckets that an eviction inspects.
    private static var inspectionsPerEviction: Int { 16 }
    /// The table size up to which nothing is removed, so that infrequent callers keep their bucket.
    private static var minimumRetained: Int { 1_000 }

    private let limit: RateLimit
    /// The maximum number of buckets. At this size a new one replaces, of some others, the one that is full soonest.
    private let capacity: Int
    private let inheritsConsumption: Bool
    private var indices: [Key: Int] = [:]
    private var slots: [Slot] = []
    /// The index of the bucket to inspect next.
    private var next = 0
    /// The number of inspections so far.
    private(set) var inspectionCount = 0
    /// The latest time at which an evicted bucket would have been full.
    private var evicted: UInt64 = 0

    package init(_ limit: RateLimit, capacity: Int, inheritsConsumption: Bool = false) {
        self.limit = limit
        self.inheritsConsumption = inheritsConsumption
        self.capacity = max(1, capacity)
    }

    package var count: Int { slots.count }

    /// Returns the time in milliseconds until `key` may take `count` tokens; nil if it may now. Takes nothing.
    package func wait(for key: Key, _ count: Int = 1, at now: UInt64) -> Int? {
        indices[key].flatMap { slots[$0].bucket.wait(count, at: now) }
    }

    /// Takes `count` tokens for `key`. Returns nil if the calls are permitted, else the time to wait in milliseconds.
    package mutating func consume(_ key: Key, _ count: Int = 1, at now: UInt64) -> Int? {
        let index = index(of: key, at: now)
        return slots[index].bucket.consume(count, at: now)
    }

    /// Takes a token for `key`, whether it is there or not.
    package mutating func take(_ key: Key, at now: UInt64) {
        let index = index(of: key, at: now)
        slots[index].bucket.take(at: now)
    }

    /// Gives back a token that `key` has taken.
    package mutating func giveBack(_ key: Key) { if let index = indices[key] { slots[index].bucket.giveBack() } }

    /// Restores the rate of `key`.
    package mutating func remove(_ key: Key) { if let index = indices[key] { remove(index) } }

    /// Returns the index of the bucket of `key`, which is created if there is none.
    private mutating func index(of key: Key, at now: UInt64) -> Int {
        if slots.count > Self.minimumRetained { forgetSome(at: now) }
        if let index = indices[key] {
            inspectionCount += 1
            return index
        }
        let isFull = slots.count >= capacity
        if isFull { evictOne(at: now) }
        let inherits = isFull && inheritsConsumption
        let bucket = inherits ? TokenBucket(limit, fullAt: evicted, now: now) : TokenBucket(limit, now: now)
        indices[key] = slots.count
        slots.append(Slot(key: key, bucket: bucket))
        return slots.count - 1
    }

    /// Evicts the bucket whose loss changes its key's rate least.
    private mutating func evictOne(at now: UInt64) {
        var (found, shortest) = (0, Double.infinity)
        for _ in 0..<min(Self.inspectionsPerEviction, slots.count) {
            if next >= slots.count { next = 0 }
            inspectionCount += 1
            let time = slots[next].bucket.timeToFull(at: now)
            if time < shortest { (found, shortest) = (next, time) }
            next += 1
        }
        if shortest > 0 { evicted = max(evicted, now + UInt64(min(shortest * 1e9, 1e18))) }
        remove(found)
    }

    private mutating func forgetSome(at now: UInt64) {
        for _ in 0..<Self.inspectionsPerCall where !slots.isEmpty {
            if next >= slots.count { next = 0 }
            inspectionCount += 1
            if slots[next].bucket.isFull(at: now) { remove(next) } else { next += 1 }
        }
    }

    private mutating func remove(_ index: Int) {
        indices[slots[index].key] = nil
        let last = slots.removeLast()
        guard index < slots.count else { return }
        slots[index] = last
        indices[last.key] = index
    }
}

/// Token buckets of keys whose connections may be on several reactors: principals or hosts. Sharded, to keep lock contention
/// between reactors low.
package final class ShardedBuckets<Key: Hashable & Sendable>: Sendable {
    /// One shard: a bucket table behind a lock.
    private final class Shard: Sendable {
        let table: Mutex<BucketTable<Key>>

        init(_ limit: RateLimit, capacity: Int) { table = Mutex(BucketTable(limit, capacity: capacity)) }
    }

    private static var partBits: Int { 6 }
    private static var capacity: Int { 1_000_000 }

    private let parts: [Shard]

    package init(_ limit: RateLimit) {
        let count = 1 << Self.partBits
        parts = (0..<count).map { _ in Shard(limit, capacity: Self.capacity / count) }
    }

    /// Takes `count` tokens for `key`. Returns nil if the calls are permitted, else the time to wait in milliseconds.
    package func consume(_ key: Key, _ count: Int = 1, at now: UInt64) -> Int? {
        let part = UInt(bitPattern: key.hashValue) >> (UInt.bitWidth - Self.partBits)
        return parts[Int(part)].table.withLock { $0.consume(key, count, at: now) }
    }
}
