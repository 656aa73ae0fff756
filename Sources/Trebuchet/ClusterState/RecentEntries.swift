internal import Synchronization
internal import TrebuchetCluster

/// The newest entries that an engine has acknowledged to this node, of all logs together, for an engine that restarts with an older log.
final class RecentEntries: Sendable {
    private struct State {
        /// Those before `first` are not kept any more.
        var entries: [(partition: Partition?, bytes: Int)] = []
        var first = 0
        /// The number of the one at `first`.
        var number: UInt64 = 0
        var bytes = 0
    }

    /// Bytes that an entry counts beside its payload.
    private static let overhead = 128

    private let mostBytes: Int
    private let state = Mutex(State())

    /// - Parameter mostBytes: bytes of all entries together; the oldest are dropped first.
    init(mostBytes: Int) { self.mostBytes = mostBytes }

    /// Bytes of the entries that are kept.
    var bytes: Int { state.withLock { $0.bytes } }

    /// Keeps an entry of a log.
    func add(_ entry: [UInt8], to partition: Partition, at place: LogPosition) {
        state.withLock { state in
            let number = state.number + UInt64(state.entries.count - state.first)
            state.entries.append((partition, entry.count + Self.overhead))
            state.bytes += entry.count + Self.overhead
            partition.didAcknowledge(entry, number, at: place)
            while state.bytes > mostBytes, state.first < state.entries.count {
                let oldest = state.entries[state.first]
                oldest.partition?.dropRecent(upTo: state.number)
                state.bytes -= oldest.bytes
                state.entries[state.first].partition = nil
                (state.first, state.number) = (state.first + 1, state.number + 1)
            }
            // Half of it at a time, so that each is moved once on average.
            if state.first * 2 > state.entries.count {
                state.entries.removeFirst(state.first)
                state.first = 0
            }
        }
    }
}

/// The newest entries of one log, in their order.
struct KeptEntries {
    /// Those before `first` are dropped.
    private var entries: [(bytes: [UInt8], number: UInt64)] = []
    private var first = 0

    var isEmpty: Bool { first == entries.count }

    mutating func append(_ entry: [UInt8], _ number: UInt64) { entries.append((entry, number)) }

    mutating func drop(upTo number: UInt64) {
        while first < entries.count, entries[first].number <= number {
            entries[first].bytes = []
            first += 1
        }
        guard first * 2 > entries.count else { return }
        entries.removeFirst(first)
        first = 0
    }

    /// The last entries, so many; nil when there are fewer.
    func last(_ count: UInt64) -> [[UInt8]]? {
        guard count <= UInt64(entries.count - first) else { return nil }
        return entries.suffix(Int(count)).map(\.bytes)
    }
}
