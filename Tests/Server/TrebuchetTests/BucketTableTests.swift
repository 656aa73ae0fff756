import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Rate limits of many parties; times are in nanoseconds.
@Suite struct BucketTableTests {
    private static let second: UInt64 = 1_000_000_000

    @Test("each party has a separate bucket, which refills over time")
    func parties() {
        var table = BucketTable<String>(RateLimit(callsPerSecond: 2, burst: 2), capacity: 10)
        for party in ["ada", "bob"] {
            #expect(table.consume(party, at: 0) == nil)
            #expect(table.consume(party, at: 0) == nil)
            #expect(table.consume(party, at: 0) == 500)
        }
        #expect(table.consume("ada", at: Self.second / 2) == nil)
        #expect(table.consume("ada", at: Self.second / 2) == 500)
    }

    @Test("several calls are admitted together or not at all; a batch larger than the burst waits for a full bucket")
    func several() {
        var bucket = TokenBucket(RateLimit(callsPerSecond: 2, burst: 4), now: 0)
        #expect(bucket.consume(3, at: 0) == nil)
        #expect(bucket.consume(3, at: 0) == 1_000)
        #expect(bucket.consume(at: 0) == nil, "no token was consumed")
        #expect(bucket.consume(9, at: Self.second) == 1_000)
        #expect(bucket.consume(9, at: 2 * Self.second) == nil)
        #expect(bucket.consume(at: 2 * Self.second) == 500)
    }

    @Test("a call inspects at most three buckets, however many exist")
    func inspectedBuckets() {
        var table = BucketTable<Int>(RateLimit(callsPerSecond: 1, burst: 1), capacity: 100_000)
        for party in 0..<50_000 { _ = table.consume(party, at: 0) }
        #expect(table.count == 50_000)
        let before = table.inspectionCount
        for party in 0..<1_000 { _ = table.consume(party * 7, at: 1) }
        #expect(table.inspectionCount - before <= 3 * 1_000)
    }

    @Test("full buckets are removed while others are used; other buckets stay")
    func forgetting() {
        var table = BucketTable<Int>(RateLimit(callsPerSecond: 1, burst: 2), capacity: 1_000_000)
        for party in 0..<20_000 { _ = table.consume(party, at: 0) }
        for _ in 0..<2 { #expect(table.consume(-1, at: Self.second) == nil) }
        for party in 20_000..<40_000 { _ = table.consume(party, at: Self.second) }
        #expect(table.count < 25_000, "full buckets were removed")
        #expect(table.consume(-1, at: Self.second) == 1_000, "a used-up bucket stays")
    }

    @Test("the number of buckets never exceeds the capacity; the oldest bucket is evicted")
    func capacity() {
        var table = BucketTable<Int>(RateLimit(callsPerSecond: 0.001, burst: 1), capacity: 5_000)
        for party in 0..<20_000 {
            #expect(table.consume(party, at: 0) == nil)
            #expect(table.count <= 5_000)
        }
        #expect(table.consume(19_999, at: 0) != nil)
    }

    @Test("a full table evicts the bucket that is full soonest, so a flood of parties restores no rate")
    func eviction() {
        var table = BucketTable<Int>(RateLimit(callsPerSecond: 0.001, burst: 3), capacity: 8)
        for _ in 0..<3 { #expect(table.consume(-1, at: 0) == nil) }
        for party in 0..<100 {
            _ = table.consume(party, at: 0)
            #expect(table.consume(-1, at: 0) != nil)
        }
    }

    @Test("all shards of shared buckets enforce the rate")
    func shared() {
        let buckets = ShardedBuckets<String>(RateLimit(callsPerSecond: 1, burst: 1))
        for party in (0..<1_000).map(String.init) {
            #expect(buckets.consume(party, at: 0) == nil)
            #expect(buckets.consume(party, at: 0) == 1_000)
        }
    }
}
