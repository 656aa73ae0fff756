internal import Synchronization

/// Token buckets by scope. The cost of a call does not depend on the number of scopes. Each call inspects a few other buckets
/// and removes those that are full, since a full bucket equals a new one. Pure: the time is a parameter.
struct BucketTable<QuotaScope: Hashable> {
    /// One entry: a scope with its bucket.
    private struct Slot {
        let scope: QuotaScope
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
    private var indices: [QuotaScope: Int] = [:]
    private var slots: [Slot] = []
    /// The index of the bucket to inspect next.
    private var next = 0
    /// The number of inspections so far.
    private(set) var inspectionCount = 0

    init(_ limit: RateLimit, capacity: Int) {
        self.limit = limit
        self.capacity = max(1, capacity)
    }

    var count: Int { slots.count }

    /// Takes `count` tokens for `scope`. Returns nil if the calls are permitted, else the time to wait in milliseconds.
    mutating func consume(_ scope: QuotaScope, _ count: Int = 1, at now: UInt64) -> Int? {
        if slots.count > Self.minimumRetained { forgetSome(at: now) }
        if let index = indices[scope] {
            inspectionCount += 1
            return slots[index].bucket.consume(count, at: now)
        }
        if slots.count >= capacity { evictOne(at: now) }
        var bucket = TokenBucket(limit, now: now)
        let wait = bucket.consume(count, at: now)
        indices[scope] = slots.count
        slots.append(Slot(scope: scope, bucket: bucket))
        return wait
    }

    /// Evicts the bucket whose loss changes its scope's rate least.
    private mutating func evictOne(at now: UInt64) {
        var (evicted, shortest) = (0, Double.infinity)
        for _ in 0..<min(Self.inspectionsPerEviction, slots.count) {
            if next >= slots.count { next = 0 }
            inspectionCount += 1
            let time = slots[next].bucket.timeToFull(at: now)
            if time < shortest { (evicted, shortest) = (next, time) }
            next += 1
        }
        remove(evicted)
    }

    private mutating func forgetSome(at now: UInt64) {
        for _ in 0..<Self.inspectionsPerCall where !slots.isEmpty {
            if next >= slots.count { next = 0 }
            inspectionCount += 1
            if slots[next].bucket.isFull(at: now) { remove(next) } else { next += 1 }
        }
    }

    private mutating func remove(_ index: Int) {
        indices[slots[index].scope] = nil
        let last = slots.removeLast()
        guard index < slots.count else { return }
        slots[index] = last
        indices[last.scope] = index
    }
}

/// Token buckets of scopes whose connections may be on several reactors: principals or hosts. Sharded, to keep lock contention
/// between reactors low.
package final class ShardedBuckets<QuotaScope: Hashable & Sendable>: Sendable {
    /// One shard: a bucket table behind a lock.
    private final class Shard: Sendable {
        let table: Mutex<BucketTable<QuotaScope>>

        init(_ limit: RateLimit, capacity: Int) { table = Mutex(BucketTable(limit, capacity: capacity)) }
    }

    private static var partBits: Int { 6 }
    private static var capacity: Int { 1_000_000 }

    private let parts: [Shard]

    package init(_ limit: RateLimit) {
        let count = 1 << Self.partBits
        parts = (0..<count).map { _ in Shard(limit, capacity: Self.capacity / count) }
    }

    /// Takes `count` tokens for `scope`. Returns nil if the calls are permitted, else the time to wait in milliseconds.
    package func consume(_ scope: QuotaScope, _ count: Int = 1, at now: UInt64) -> Int? {
        let part = UInt(bitPattern: scope.hashValue) >> (UInt.bitWidth - Self.partBits)
        return parts[Int(part)].table.withLock { $0.consume(scope, count, at: now) }
    }
}
