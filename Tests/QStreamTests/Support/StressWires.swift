@testable import QStream
import Synchronization

/// A value that says by whom it was written, and how much everybody had written by then.
struct StressSample: Sendable {
    var version = 0
    var written: [Int]
}

/// What the writers of a stress test write to, and what all its readers share.
final class StressWires: Sendable {
    let left: Subject<StressSample>
    let right: Subject<StressSample>
    /// Made once, so that waves of all writers meet in it.
    let sum: Streams.Derived<(left: Int, right: Int)>
    /// What `sum` takes of each side.
    let ownInlets = 1
    private let ended = Atomic(false)

    init(writers: Int) async {
        left = Subject(value: StressSample(written: Array(repeating: 0, count: writers)))
        right = Subject(value: StressSample(written: Array(repeating: 0, count: writers)))
        sum = await left.combineLatest(right).map { (left: $0.version, right: $1.version) }
    }

    /// Whether the writers may go home.
    var isOver: Bool { ended.load(ordering: .relaxed) }
    func end() { ended.store(true, ordering: .relaxed) }

    func write(_ writer: Int, _ side: Subject<StressSample>) async {
        await side.mutate { sample in
            sample.version += 1
            sample.written[writer] += 1
        }
    }
}
