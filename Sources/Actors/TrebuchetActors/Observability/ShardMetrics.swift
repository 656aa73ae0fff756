internal import Synchronization

/// The metrics of one reactor: plain integers that only this reactor writes. To add up all reactors, each one is queried in
/// turn.
///
/// Accessed only on its reactor.
package final class ShardMetrics {
    /// The maximum number of rows. Calls of further methods are counted as `otherCalls`.
    package static let maximumRows = 4_096

    // Both are allocated here and freed in `deinit`. The first has an element for each `Metric`. The second has `rows` times
    // the width of `DurationBuckets`, and every access checks first that the row exists.
    private let metrics: UnsafeMutablePointer<UInt64>
    @exclusivity(unchecked) private var times: UnsafeMutablePointer<UInt64>
    @exclusivity(unchecked) private var rows: Int
    private var limits: [String: UInt64] = [:]

    package init() {
        metrics = .allocate(capacity: Metric.allCases.count)
        metrics.initialize(repeating: 0, count: Metric.allCases.count)
        rows = TimedOperation.allCases.count
        times = .allocate(capacity: rows * DurationBuckets.width)
        times.initialize(repeating: 0, count: rows * DurationBuckets.width)
    }

    deinit {
        metrics.deallocate()
        times.deallocate()
    }

    @inline(__always)
    package func count(_ metric: Metric) { metrics[metric.rawValue] &+= 1 }

    @inline(__always)
    package func count(_ metric: Metric, _ more: UInt64) { metrics[metric.rawValue] &+= more }

    /// Counts a rejection by a limit.
    ///
    /// - Parameter name: the name of a setting, never text from a client, because each name gets an entry.
    package func countRefusal(by name: String) { limits[name, default: 0] += 1 }

    @inline(__always)
    package func count(_ work: TimedOperation, duration time: UInt64) { count(row: work.rawValue, duration: time) }

    /// Counts a call.
    ///
    /// - Parameters:
    ///   - row: the row of the method.
    ///   - time: the duration in nanoseconds.
    @inline(__always)
    package func count(row: Int, duration time: UInt64) {
        let row = row < rows ? row : self.row(row)
        let counters = times + row &* DurationBuckets.width
        counters[DurationBuckets.index(of: time)] &+= 1
        counters[DurationBuckets.width &- 1] &+= time
    }

    /// Counts several calls with their total duration. If one of them may have exceeded the first bucket, one call is counted
    /// with the total, which is slightly too much. The others are counted as fast.
    @inline(__always)
    package func count(row: Int, _ calls: UInt64, duration time: UInt64) {
        guard calls > 1 else { return count(row: row, duration: time) }
        let row = row < rows ? row : self.row(row)
        let counters = times + row &* DurationBuckets.width
        counters[0] &+= calls &- 1
        counters[DurationBuckets.index(of: time)] &+= 1
        counters[DurationBuckets.width &- 1] &+= time
    }

    /// Allocates a row that was not used before.
    @inline(never)
    private func row(_ row: Int) -> Int {
        guard row < Self.maximumRows else { return TimedOperation.otherCalls.rawValue }
        let count = min(Self.maximumRows, max(row + 1, 2 * rows))
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: count * DurationBuckets.width)
        larger.initialize(repeating: 0, count: count * DurationBuckets.width)
        larger.update(from: times, count: rows * DurationBuckets.width)
        times.deallocate()
        (times, rows) = (larger, count)
        return row
    }

    /// A copy of the counters.
    package var sum: MetricTotals {
        MetricTotals(
            metrics: Array(UnsafeBufferPointer(start: metrics, count: Metric.allCases.count)),
            times: Array(UnsafeBufferPointer(start: times, count: rows * DurationBuckets.width)), limits: limits)
    }
}

/// The sum of the metrics of several reactors.
package struct MetricTotals: Sendable {
    private var metrics: [UInt64]
    private var times: [UInt64]
    /// The number of rejections by the limit that was reached.
    package private(set) var limits: [String: UInt64]

    fileprivate init(metrics: [UInt64], times: [UInt64], limits: [String: UInt64]) {
        self.metrics = metrics
        self.times = times
        self.limits = limits
    }

    package init() { self.init(metrics: Metric.allCases.map { _ in 0 }, times: [], limits: [:]) }

    package subscript(_ metric: Metric) -> UInt64 { metrics[metric.rawValue] }

    /// Returns the histogram of a row; nil if the row has no counts.
    package func times(row: Int) -> DurationHistogram? {
        let start = row * DurationBuckets.width
        guard start + DurationBuckets.width <= times.count else { return nil }
        let count = DurationHistogram(times[start..<start + DurationBuckets.width])
        return count.count > 0 ? count : nil
    }

    package func times(of work: TimedOperation) -> DurationHistogram {
        times(row: work.rawValue) ?? DurationHistogram()
    }

    /// Adds rejections that were counted elsewhere.
    package mutating func addRejections(_ refusals: [String: UInt64]) { limits.merge(refusals) { $0 &+ $1 } }

    package mutating func merge(_ other: MetricTotals) {
        for (index, value) in other.metrics.enumerated() { metrics[index] &+= value }
        if times.count < other.times.count {
            times += Array(repeating: 0, count: other.times.count - times.count)
        }
        for (index, value) in other.times.enumerated() { times[index] &+= value }
        addRejections(other.limits)
    }
}

/// A histogram of durations.
package struct DurationHistogram: Sendable, Equatable {
    /// The counts by `DurationBuckets.bounds`, not cumulative; the last is for longer durations.
    package private(set) var buckets: [UInt64]
    /// The sum of the durations in nanoseconds.
    package private(set) var sum: UInt64

    fileprivate init(_ row: ArraySlice<UInt64>) {
        buckets = Array(row.dropLast())
        sum = row.last ?? 0
    }

    package init() { self.init(Array(repeating: 0, count: DurationBuckets.width)[...]) }

    package var count: UInt64 { buckets.reduce(0, &+) }

    package mutating func merge(_ other: DurationHistogram) {
        for (index, value) in other.buckets.enumerated() { buckets[index] &+= value }
        sum &+= other.sum
    }
}

/// The rows of methods. Each method of a type that the program uses has one; clients cannot add rows.
package enum MethodHistogramIndex {
    /// The row of one method.
    package struct Row: Sendable {
        package let number: Int
        package let type: String
        package let method: String
    }

    private static let rows = Mutex<[Row]>([])

    static func registerMethod(_ method: String, of type: String) -> Int {
        rows.withLock { rows in
            let number = TimedOperation.allCases.count + rows.count
            guard number < ShardMetrics.maximumRows else { return TimedOperation.otherCalls.rawValue }
            rows.append(Row(number: number, type: type, method: method))
            return number
        }
    }

    package static var all: [Row] { rows.withLock { $0 } }
}
