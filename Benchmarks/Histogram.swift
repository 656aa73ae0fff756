/// Durations in nanoseconds, counted in buckets that are at most 3 % wide.
package struct Histogram: Sendable {
    private static let precision = 5
    private var buckets = [Int](repeating: 0, count: 64 << precision)
    package private(set) var count = 0
    package private(set) var largest: UInt64 = 0

    package init() {}

    package mutating func add(_ value: UInt64) {
        buckets[Self.index(value)] += 1
        count += 1
        largest = max(largest, value)
    }

    package mutating func add(_ other: Histogram) {
        for index in buckets.indices { buckets[index] += other.buckets[index] }
        count += other.count
        largest = max(largest, other.largest)
    }

    /// Returns the quantile for a share of all values, in microseconds.
    package func microseconds(_ share: Double) -> Double {
        guard count > 0 else { return 0 }
        var left = Int((share * Double(count)).rounded(.up))
        for (index, bucket) in buckets.enumerated() {
            left -= bucket
            if left <= 0 { return Double(Self.value(index)) / 1000 }
        }
        return Double(largest) / 1000
    }

    private static func index(_ value: UInt64) -> Int {
        guard value >= 1 << precision else { return Int(value) }
        let exponent = 63 - value.leadingZeroBitCount
        let fraction = Int(truncatingIfNeeded: value >> UInt64(exponent - precision)) & ((1 << precision) - 1)
        return (exponent - precision + 1) << precision + fraction
    }

    private static func value(_ index: Int) -> UInt64 {
        guard index >= 1 << precision else { return UInt64(index) }
        let exponent = index >> precision + precision - 1
        return (1 << UInt64(exponent)) + UInt64(index & ((1 << precision) - 1)) << UInt64(exponent - precision)
    }
}
