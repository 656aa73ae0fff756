import Synchronization

/// The acknowledgements that the writers received while there was power.
final class AcknowledgedWrites: Sendable {
    struct Entry: Sendable {
        let begun: Int
        /// The time of the acknowledgement, with power still on.
        var acknowledged: Int?
    }

    private struct State {
        var now = 0
        var entries: [[Entry]]
        /// The epochs of each writer's log: clients may have seen versions of each.
        var epochs: [Set<String>]

        mutating func tick() -> Int {
            now += 1
            return now
        }
    }

    private let state: Mutex<State>

    init(writers: Int) {
        state = Mutex(
            State(
                entries: Array(repeating: [], count: writers), epochs: Array(repeating: ["e"], count: writers)))
    }

    /// The batches of each writer, in order.
    var entries: [[Entry]] { state.withLock { $0.entries } }

    /// By the writer.
    var epochs: [Set<String>] { state.withLock { $0.epochs } }

    func use(_ epoch: String, _ writer: Int) { _ = state.withLock { $0.epochs[writer].insert(epoch) } }

    /// The number of the writer's next batch, from 1.
    func begin(_ writer: Int) -> Int {
        state.withLock { state in
            let entry = Entry(begun: state.tick())
            state.entries[writer].append(entry)
            return state.entries[writer].count
        }
    }

    func acknowledge(_ writer: Int, _ number: Int) {
        state.withLock { state in state.entries[writer][number - 1].acknowledged = state.tick() }
    }
}
