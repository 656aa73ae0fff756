@testable import QStream
import Synchronization

/// A value with the write counts of all writers at its time.
struct StressSample: Sendable {
    var version = 0
    var written: [Int]
}

/// The streams of a stress test: inputs of the writers, and streams shared by all readers.
final class StressWires: Sendable {
    let left: Subject<StressSample>
    let right: Subject<StressSample>
    /// Created once, so that waves of all writers meet in it.
    let sum: Streams.Derived<(left: Int, right: Int)>
    /// The number of inlets that `sum` uses on each side.
    let ownInlets = 1
    private let ended = Atomic(false)

    init(writers: Int) async {
        left = Subject(value: StressSample(written: Array(repeating: 0, count: writers)))
        right = Subject(value: StressSample(written: Array(repeating: 0, count: writers)))
        sum = await left.combineLatest(right).map { (left: $0.version, right: $1.version) }
    }

    /// True if the writers may stop.
    var isOver: Bool { ended.load(ordering: .relaxed) }
    func end() { ended.store(true, ordering: .relaxed) }

    func write(_ writer: Int, _ side: Subject<StressSample>) async {
        await side.mutate { sample in
            sample.version += 1
            sample.written[writer] += 1
        }
    }
}
