internal import Synchronization

/// The buckets of many parties. A call costs the same however many there are: with each one a few others are looked at, and
/// those that have filled up go, since they are as good as new ones. Pure: the time is given.
struct BucketTable<Party: Hashable> {
    private struct Slot {
        let party: Party
        var bucket: TokenBucket
    }

    /// Buckets that are looked at with each call; more than come with it, so that the full ones cannot pile up.
    private static var looksPerCall: Int { 2 }
    /// Few of them are kept, so that who calls seldom does not always begin anew.
    private static var keptAnyway: Int { 1_000 }

    private let limit: RateLimit
    /// At so many, one that is not full goes for a new one, and its party may begin anew.
    private let capacity: Int
    private var places: [Party: Int] = [:]
    private var slots: [Slot] = []
    /// Where it looks next.
    private var next = 0
    /// How many were looked at so far.
    private(set) var looks = 0

    init(_ limit: RateLimit, capacity: Int) {
        self.limit = limit
        self.capacity = max(1, capacity)
    }

    var count: Int { slots.count }

    /// Nil when the party may make so many calls now; else the time after which it may, in milliseconds.
    mutating func take(_ party: Party, _ count: Int = 1, at now: UInt64) -> Int? {
        if slots.count > Self.keptAnyway { forgetSome(at: now) }
        if let place = places[party] {
            looks += 1
            return slots[place].bucket.take(count, at: now)
        }
        if slots.count >= capacity { remove(next < slots.count ? next : 0) }
        var bucket = TokenBucket(limit, now: now)
        let wait = bucket.take(count, at: now)
        places[party] = slots.count
        slots.append(Slot(party: party, bucket: bucket))
        return wait
    }

    private mutating func forgetSome(at now: UInt64) {
        for _ in 0..<Self.looksPerCall where !slots.isEmpty {
            if next >= slots.count { next = 0 }
            looks += 1
            if slots[next].bucket.isFull(at: now) { remove(next) } else { next += 1 }
        }
    }

    private mutating func remove(_ place: Int) {
        places[slots[place].party] = nil
        let last = slots.removeLast()
        guard place < slots.count else { return }
        slots[place] = last
        places[last.party] = place
    }
}

/// The buckets of parties that may have connections on many reactors: principals, or hosts. In parts, so that reactors seldom
/// wait for each other.
package final class SharedBuckets<Party: Hashable & Sendable>: Sendable {
    private final class Part: Sendable {
        let table: Mutex<BucketTable<Party>>

        init(_ limit: RateLimit, capacity: Int) { table = Mutex(BucketTable(limit, capacity: capacity)) }
    }

    private static var partBits: Int { 6 }
    private static var capacity: Int { 1_000_000 }

    private let parts: [Part]

    package init(_ limit: RateLimit) {
        let count = 1 << Self.partBits
        parts = (0..<count).map { _ in Part(limit, capacity: Self.capacity / count) }
    }

    /// Nil when the party may make so many calls now; else the time after which it may, in milliseconds.
    package func take(_ party: Party, _ count: Int = 1, at now: UInt64) -> Int? {
        let part = UInt(bitPattern: party.hashValue) >> (UInt.bitWidth - Self.partBits)
        return parts[Int(part)].table.withLock { $0.take(party, count, at: now) }
    }
}
