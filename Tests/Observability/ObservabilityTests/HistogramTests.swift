import Testing

@testable import TrebuchetActors

/// The metrics of a reactor, and the sum of several.
@Suite struct HistogramTests {
    @Test(
        "a duration counts in the first bucket that contains it, and durations over the last bound count in one bucket")
    func buckets() {
        let counts = ShardMetrics()
        for time in [0, 50_000, 50_001, 10_000_000_000, 10_000_000_001, 1 << 40] as [UInt64] {
            counts.count(.storeWrites, duration: time)
        }
        let times = counts.sum.times(of: .storeWrites)
        #expect(times.buckets.count == DurationBuckets.bounds.count + 1)
        #expect(times.buckets.first == 2)
        #expect(times.buckets[1] == 1)
        #expect(times.buckets[DurationBuckets.bounds.count - 1] == 1)
        #expect(times.buckets.last == 2)
        #expect(times.count == 6)
        #expect(times.sum == 20_000_000_001 + 100_001 + 1 << 40)
    }

    @Test("calls counted together all count as quick when their total is quick, and otherwise one of them does not")
    func together() {
        let counts = ShardMetrics()
        counts.count(row: 5, 16, duration: 50_000)
        #expect(counts.sum.times(row: 5)?.buckets[0] == 16)
        counts.count(row: 5, 16, duration: 300_000)
        counts.count(row: 5, 1, duration: 300_000)
        let times = counts.sum.times(row: 5)
        #expect(times?.buckets[0] == 31)
        #expect(times?.buckets[3] == 2)
        #expect(times?.count == 33 && times?.sum == 650_000)
    }

    @Test("rows are created at first use, keep earlier counts, and are limited in number")
    func rows() {
        let counts = ShardMetrics()
        counts.count(row: 3, duration: 7)
        counts.count(row: 900, duration: 1)
        counts.count(row: 3, duration: 8)
        counts.count(row: ShardMetrics.maximumRows, duration: 1)
        counts.count(row: .max, duration: 1)
        let sum = counts.sum
        #expect(sum.times(row: 3)?.sum == 15)
        #expect(sum.times(row: 900)?.count == 1)
        #expect(sum.times(row: 4) == nil)
        #expect(sum.times(row: ShardMetrics.maximumRows) == nil)
        #expect(sum.times(of: .otherCalls).count == 2)
    }

    @Test("the sum of two reactors has both, whichever has more rows")
    func sum() {
        let (few, many) = (ShardMetrics(), ShardMetrics())
        few.count(.connectionsOpened)
        few.countRefusal(by: "streams")
        many.count(.connectionsOpened, 2)
        many.countRefusal(by: "streams")
        many.countRefusal(by: "filters")
        many.count(row: 50, duration: 60_000)
        for (one, other) in [(few, many), (many, few)] {
            var sum = MetricTotals()
            sum.merge(one.sum)
            sum.merge(other.sum)
            #expect(sum[.connectionsOpened] == 3)
            #expect(sum.limits == ["streams": 2, "filters": 1])
            #expect(sum.times(row: 50)?.buckets[1] == 1)
        }
    }

    @Test("each method of a type has a separate row, and each error code a counter")
    func names() {
        let numbers = MethodHistogramIndex.all.map(\.number)
        #expect(Set(numbers).count == numbers.count)
        #expect(numbers.allSatisfy { $0 >= TimedOperation.allCases.count })
        #expect(Set(Metric.codes.map(\.metric)).count == Metric.codes.count)
        #expect(Metric.error("timeout") == .timeout)
        #expect(Metric.error("an app's own") == .otherError)
    }
}
