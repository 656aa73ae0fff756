internal import Synchronization

/// What is counted on one reactor: plain numbers that nobody else writes. Who wants the sum of all reactors asks each of them in turn.
///
/// Touched on its reactor alone.
package final class ShardCounts {
    /// Rows beyond these are counted as `otherCalls`.
    package static let mostRows = 4_096

    // Both are allocated here and freed in `deinit`. The first has a place for each `Figure`; the second `rows` times the width of
    // `TimeBuckets`, and no row is used before it is looked whether it is there.
    private let figures: UnsafeMutablePointer<UInt64>
    @exclusivity(unchecked) private var times: UnsafeMutablePointer<UInt64>
    @exclusivity(unchecked) private var rows: Int
    private var limits: [String: UInt64] = [:]

    package init() {
        figures = .allocate(capacity: Figure.allCases.count)
        figures.initialize(repeating: 0, count: Figure.allCases.count)
        rows = TimedWork.allCases.count
        times = .allocate(capacity: rows * TimeBuckets.width)
        times.initialize(repeating: 0, count: rows * TimeBuckets.width)
    }

    deinit {
        figures.deallocate()
        times.deallocate()
    }

    @inline(__always)
    package func count(_ figure: Figure) { figures[figure.rawValue] &+= 1 }

    @inline(__always)
    package func count(_ figure: Figure, _ more: UInt64) { figures[figure.rawValue] &+= more }

    /// Something was refused because of a limit.
    ///
    /// - Parameter name: that of a setting, and never what a client has sent: each has a place of its own.
    package func countRefusal(by name: String) { limits[name, default: 0] += 1 }

    @inline(__always)
    package func count(_ work: TimedWork, took time: UInt64) { count(row: work.rawValue, took: time) }

    /// - Parameter row: the number of a method, in nanoseconds what its call took.
    @inline(__always)
    package func count(row: Int, took time: UInt64) {
        let row = row < rows ? row : self.row(row)
        let place = times + row &* TimeBuckets.width
        place[TimeBuckets.place(of: time)] &+= 1
        place[TimeBuckets.width &- 1] &+= time
    }

    /// Several calls that have taken so long together. Where one of them may have taken longer than the first bucket has room for, one counts
    /// with the time of all, which is a little too much, and the others as quick.
    @inline(__always)
    package func count(row: Int, _ calls: UInt64, took time: UInt64) {
        guard calls > 1 else { return count(row: row, took: time) }
        let row = row < rows ? row : self.row(row)
        let place = times + row &* TimeBuckets.width
        place[0] &+= calls &- 1
        place[TimeBuckets.place(of: time)] &+= 1
        place[TimeBuckets.width &- 1] &+= time
    }

    /// A row that was not used before.
    @inline(never)
    private func row(_ row: Int) -> Int {
        guard row < Self.mostRows else { return TimedWork.otherCalls.rawValue }
        let count = min(Self.mostRows, max(row + 1, 2 * rows))
        let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: count * TimeBuckets.width)
        larger.initialize(repeating: 0, count: count * TimeBuckets.width)
        larger.update(from: times, count: rows * TimeBuckets.width)
        times.deallocate()
        (times, rows) = (larger, count)
        return row
    }

    /// What was counted so far.
    package var sum: CountSum {
        CountSum(
            figures: Array(UnsafeBufferPointer(start: figures, count: Figure.allCases.count)),
            times: Array(UnsafeBufferPointer(start: times, count: rows * TimeBuckets.width)), limits: limits)
    }
}

/// What several reactors have counted.
package struct CountSum: Sendable {
    private var figures: [UInt64]
    private var times: [UInt64]
    /// Refusals, by the limit that was reached.
    package private(set) var limits: [String: UInt64]

    fileprivate init(figures: [UInt64], times: [UInt64], limits: [String: UInt64]) {
        self.figures = figures
        self.times = times
        self.limits = limits
    }

    package init() { self.init(figures: Figure.allCases.map { _ in 0 }, times: [], limits: [:]) }

    package subscript(_ figure: Figure) -> UInt64 { figures[figure.rawValue] }

    /// The numbers of a row; nil when nothing was counted there.
    package func times(row: Int) -> TimeCount? {
        let start = row * TimeBuckets.width
        guard start + TimeBuckets.width <= times.count else { return nil }
        let count = TimeCount(times[start..<start + TimeBuckets.width])
        return count.count > 0 ? count : nil
    }

    package func times(of work: TimedWork) -> TimeCount { times(row: work.rawValue) ?? TimeCount() }

    /// Refusals that were counted elsewhere.
    package mutating func add(refusals: [String: UInt64]) { limits.merge(refusals) { $0 &+ $1 } }

    package mutating func add(_ other: CountSum) {
        for (place, value) in other.figures.enumerated() { figures[place] &+= value }
        if times.count < other.times.count {
            times += Array(repeating: 0, count: other.times.count - times.count)
        }
        for (place, value) in other.times.enumerated() { times[place] &+= value }
        add(refusals: other.limits)
    }
}

/// How often something took how long.
package struct TimeCount: Sendable, Equatable {
    /// By `TimeBuckets.bounds`, each for itself; the last for what took longer.
    package private(set) var buckets: [UInt64]
    /// Nanoseconds.
    package private(set) var sum: UInt64

    fileprivate init(_ row: ArraySlice<UInt64>) {
        buckets = Array(row.dropLast())
        sum = row.last ?? 0
    }

    package init() { self.init(Array(repeating: 0, count: TimeBuckets.width)[...]) }

    package var count: UInt64 { buckets.reduce(0, &+) }

    package mutating func add(_ other: TimeCount) {
        for (place, value) in other.buckets.enumerated() { buckets[place] &+= value }
        sum &+= other.sum
    }
}

/// Gives methods their rows: each method of a type that the program uses has one, and no client can make more.
package enum MethodRows {
    package struct Row: Sendable {
        package let number: Int
        package let type: String
        package let method: String
    }

    private static let rows = Mutex<[Row]>([])

    static func add(_ method: String, of type: String) -> Int {
        rows.withLock { rows in
            let number = TimedWork.allCases.count + rows.count
            guard number < ShardCounts.mostRows else { return TimedWork.otherCalls.rawValue }
            rows.append(Row(number: number, type: type, method: method))
            return number
        }
    }

    package static var all: [Row] { rows.withLock { $0 } }
}
