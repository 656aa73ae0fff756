import CEpoll
import Platform
import QStream
import Relays
import Synchronization

/// Measures single operators, with `AsyncStream`s and the tasks that read them as the baseline.
struct OperatorLoad {
    let values: Int

    func run(_ report: inout BenchReport) async {
        await compare("combine_latest", to: &report, { await combineLatest() }, { await combinedSequences() })
        await compare("flat_map", to: &report, { await flatMap() }, { await flatMappedSequence() })
        await compare("debounce", to: &report, { await debounce() }, { await debouncedTasks() })
        await reportMemory(to: &report)
    }

    /// Adds the values per second, as medians of alternating runs, and their ratio in percent.
    private func compare(
        _ name: String, to report: inout BenchReport, _ stream: () async -> Double, _ sequence: () async -> Double
    ) async {
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for _ in 0..<5 {
            ours.append(await stream())
            theirs.append(await sequence())
        }
        report.add(name + "_per_second", Int(ours.median))
        report.add(name + "_sequence_per_second", Int(theirs.median))
        report.add(name + "_percent_of_sequence", 100 * ours.median / theirs.median)
    }

    private func rate(since start: UInt64, _ received: Int, of expected: Int) -> Double {
        let elapsed = MonotonicClock.seconds(since: start)
        precondition(received == expected, "\(received) of \(expected) values were received")
        return Double(values) / elapsed
    }

    // MARK: combineLatest

    @concurrent private func combineLatest() async -> Double {
        let (a, b, received) = (Subject(value: 0), Subject(value: 0), SharedCount())
        let subscription = await a.combineLatest(b).subscribe { _ in received.add(1) }
        let start = MonotonicClock.now
        for value in 0..<values { await (value & 1 == 0 ? a : b).set(value) }
        defer { withExtendedLifetime(subscription) {} }
        return rate(since: start, received.value, of: values)
    }

    /// Two reading tasks, an object with the newest value of both, and a stream for the pairs.
    @concurrent private func combinedSequences() async -> Double {
        let (evens, a) = AsyncStream.makeStream(of: Int.self)
        let (odds, b) = AsyncStream.makeStream(of: Int.self)
        let (pairs, pair) = AsyncStream.makeStream(of: (Int, Int).self)
        let newest = Newest(pair)
        let start = MonotonicClock.now
        let received = await withTaskGroup { group in
            group.addTask {
                for await value in evens { newest.set { $0.0 = value } }
                return 0
            }
            group.addTask {
                for await value in odds { newest.set { $0.1 = value } }
                return 0
            }
            group.addTask { [values] in
                var count = 0
                for await _ in pairs {
                    count += 1
                    if count == values { break }
                }
                return count
            }
            for value in 0..<values { (value & 1 == 0 ? a : b).yield(value) }
            a.finish()
            b.finish()
            return await group.reduce(0, +)
        }
        return rate(since: start, received, of: values)
    }

    // MARK: flatMap

    @concurrent private func flatMap() async -> Double {
        let (subject, received) = (Subject(value: 0), SharedCount())
        let subscription = await subject.flatMap { [$0, $0] }.subscribe { _ in received.add(1) }
        let start = MonotonicClock.now
        for value in 0..<values { await subject.set(value) }
        defer { withExtendedLifetime(subscription) {} }
        return rate(since: start, received.value, of: 2 * values)
    }

    @concurrent private func flatMappedSequence() async -> Double {
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let start = MonotonicClock.now
        let received = await withTaskGroup { group in
            group.addTask {
                var count = 0
                for await _ in stream.flatMap({ Elements(elements: [$0, $0]) }) { count += 1 }
                return count
            }
            for value in 0..<values { continuation.yield(value) }
            continuation.finish()
            return await group.reduce(0, +)
        }
        return rate(since: start, received, of: 2 * values)
    }

    // MARK: debounce

    /// Measures the sender's cost per value; only the last value passes.
    @concurrent private func debounce() async -> Double {
        let (subject, last) = (Subject(value: -1), StateRelay(-1))
        let subscription = await subject.debounce(for: .milliseconds(5)).subscribe { last.update($0) }
        let start = MonotonicClock.now
        for value in 0..<values { await subject.set(value) }
        let elapsed = MonotonicClock.seconds(since: start)
        for await value in last.stream where value == values - 1 { break }
        withExtendedLifetime(subscription) {}
        return Double(values) / elapsed
    }

    /// One task per value, which sleeps and is cancelled by the next.
    @concurrent private func debouncedTasks() async -> Double {
        let last = StateRelay(-1)
        var sleeper: Task<Void, Never>?
        let start = MonotonicClock.now
        for value in 0..<values {
            sleeper?.cancel()
            sleeper = Task {
                guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
                last.update(value)
            }
        }
        let elapsed = MonotonicClock.seconds(since: start)
        for await value in last.stream where value == values - 1 { break }
        return Double(values) / elapsed
    }

    // MARK: Memory

    /// Adds the heap bytes per subscriber, and per task with an `AsyncStream`, for 10,000 of each.
    private func reportMemory(to report: inout BenchReport) async {
        let count = 10_000
        let subject = Subject(value: 0)
        var before = Self.heap()
        var subscriptions: [AnySubscription] = []
        subscriptions.reserveCapacity(count)
        for _ in 0..<count { subscriptions.append(await subject.subscribe { _ in }) }
        report.add("subscriber_bytes", (Self.heap() - before) / count)
        subscriptions = []
        before = Self.heap()
        for _ in 0..<count { subscriptions.append(await subject.map { $0 }.subscribe { _ in }) }
        report.add("map_and_subscriber_bytes", (Self.heap() - before) / count)
        subscriptions = []
        before = Self.heap()
        var readers: [(AsyncStream<Int>.Continuation, Task<Void, Never>)] = []
        readers.reserveCapacity(count)
        let waiting = SharedCount()
        for _ in 0..<count {
            let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
            let task = Task {
                waiting.add(1)
                for await _ in stream {}
            }
            readers.append((continuation, task))
        }
        while waiting.value < count { await Task.yield() }
        report.add("sequence_reader_bytes", (Self.heap() - before) / count)
        for (continuation, _) in readers { continuation.finish() }
    }

    private static func heap() -> Int {
        let state = gnu_mallinfo()
        return Int(state.uordblks + state.hblkhd)
    }
}

/// The newest values of two streams; each change is sent to the stream of pairs.
private final class Newest: Sendable {
    private let pair = Mutex((0, 0))
    private let pairs: AsyncStream<(Int, Int)>.Continuation

    init(_ pairs: AsyncStream<(Int, Int)>.Continuation) { self.pairs = pairs }

    func set(_ change: (inout (Int, Int)) -> Void) {
        pair.withLock { pair in
            change(&pair)
            let (a, b) = pair
            pairs.yield((a, b))
        }
    }
}

/// The elements of an array, as an asynchronous sequence that never waits.
private struct Elements: AsyncSequence, Sendable {
    let elements: [Int]

    /// The iterator over the elements.
    struct AsyncIterator: AsyncIteratorProtocol {
        var elements: IndexingIterator<[Int]>

        mutating func next() async -> Int? { elements.next() }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(elements: elements.makeIterator()) }
}

/// A count that tasks share.
private final class SharedCount: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add(_ number: Int) { count.add(number, ordering: .relaxed) }
}
