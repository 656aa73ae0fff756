import Platform
import QStream
import Synchronization

/// Measures a chain of five operators with one subscriber: QStream's operators against one plain actor per operator.
struct StreamLoad {
    let values: Int

    func run() async -> BenchReport {
        // Alternate, so that other load affects all.
        var (streams, actors, mainStreams, mainActors): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
        for _ in 0..<5 {
            streams.append(await streamRate())
            actors.append(await actorRate())
            mainStreams.append(await streamRateFromMain())
            mainActors.append(await actorRateFromMain())
        }
        var report = BenchReport()
        report.add("values", values)
        Self.add("", streams, actors, to: &report)
        Self.add("main_", mainStreams, mainActors, to: &report)
        return report
    }

    /// Adds the values per second as medians, and the ratio in percent.
    private static func add(_ prefix: String, _ streams: [Double], _ actors: [Double], to report: inout BenchReport) {
        let (ours, theirs) = (streams.median, actors.median)
        report.add(prefix + "qstream_per_second", Int(ours))
        report.add(prefix + "actors_per_second", Int(theirs))
        report.add(prefix + "percent_of_actors", 100 * ours / theirs)
    }

    // This loop occurs four times, because the measurement compares isolations of the sender.

    @concurrent private func streamRate() async -> Double {
        let chain = await StreamChain()
        let start = MonotonicClock.now
        for value in 0..<values { await chain.subject.set(value) }
        return rate(since: start, chain.received)
    }

    @MainActor private func streamRateFromMain() async -> Double {
        let chain = await StreamChain()
        let start = MonotonicClock.now
        for value in 0..<values { await chain.subject.set(value) }
        return rate(since: start, chain.received)
    }

    @concurrent private func actorRate() async -> Double {
        let chain = ActorChain()
        let start = MonotonicClock.now
        for value in 0..<values { await chain.head.receive(value) }
        return rate(since: start, chain.received)
    }

    @MainActor private func actorRateFromMain() async -> Double {
        let chain = ActorChain()
        let start = MonotonicClock.now
        for value in 0..<values { await chain.head.receive(value) }
        return rate(since: start, chain.received)
    }

    private func rate(since start: UInt64, _ received: Received) -> Double {
        let elapsed = MonotonicClock.seconds(since: start)
        precondition(received.values == values, "\(received.values) of \(values) values were received")
        return Double(values) / elapsed
    }
}

/// The values of the subscriber; checks that they arrive in order.
private final class Received: Sendable {
    private let count = Atomic(0)

    var values: Int { count.load(ordering: .relaxed) }

    func note(_ value: Int) {
        let (before, _) = count.add(1, ordering: .relaxed)
        precondition(value == before, "value \(value) was received instead of \(before)")
    }
}

// The operators of both chains pass all values and restore them at the end. The closures are inline, as in an app.

/// The chain of QStream operators.
private struct StreamChain {
    let subject = Subject(value: -1)
    let received = Received()
    private let subscription: AnySubscription

    init() async {
        let received = received
        subscription = await subject.map { $0 &+ 3 }.filter { $0 >= 0 }.map { $0 &* 2 }
            .compactMap { $0 & 1 == 0 ? $0 / 2 : nil }.map { $0 &- 3 }
            .subscribe { received.note($0) }
    }
}

/// The chain of actors.
private struct ActorChain {
    let head: Stage
    let received = Received()

    init() {
        let subtract = Stage({ $0 &- 3 }) { [received] in received.note($0) }
        let halve = Stage({ $0 & 1 == 0 ? $0 / 2 : nil }) { await subtract.receive($0) }
        let double = Stage({ $0 &* 2 }) { await halve.receive($0) }
        let filter = Stage({ $0 >= 0 ? $0 : nil }) { await double.receive($0) }
        head = Stage({ $0 &+ 3 }) { await filter.receive($0) }
    }
}

/// A hand-written operator: stores its newest value, and waits until the next operator has processed it.
private actor Stage {
    private(set) var current: Int?
    private let transform: @Sendable (Int) async -> Int?
    private let next: @Sendable (Int) async -> Void

    init(_ transform: @escaping @Sendable (Int) async -> Int?, _ next: @escaping @Sendable (Int) async -> Void) {
        self.transform = transform
        self.next = next
    }

    func receive(_ value: Int) async {
        guard let output = await transform(value) else { return }
        current = output
        await next(output)
    }
}
