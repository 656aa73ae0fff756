internal import Platform
internal import Synchronization
internal import TrebuchetCluster

/// The newest entries of all logs that the coordination store has acknowledged to this node, in case it restarts with an older log.
final class RecentEntries: Sendable {
    private struct State {
        var entries = WorkQueue<(partition: ActorLog, bytes: Int)>()
        /// The number of the oldest entry.
        var number: UInt64 = 0
        var bytes = 0
    }

    /// Bytes that an entry counts besides its payload.
    private static let overhead = 128

    private let maximumBytes: Int
    private let state = Mutex(State())

    /// - Parameter maximumBytes: The maximum size of all entries together; the oldest are dropped first.
    init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// The size of the kept entries in bytes.
    var bytes: Int { state.withLock { $0.bytes } }

    /// Adds an entry of a log.
    func insert(_ entry: [UInt8], to partition: ActorLog, at position: LogPosition) {
        state.withLock { state in
            let number = state.number + UInt64(state.entries.count)
            state.entries.append((partition, entry.count + Self.overhead))
            state.bytes += entry.count + Self.overhead
            partition.didAcknowledge(entry, number, at: position)
            while state.bytes > maximumBytes, !state.entries.isEmpty {
                let oldest = state.entries.removeFirst()
                oldest.partition.dropRecent(upTo: state.number)
                state.bytes -= oldest.bytes
                state.number += 1
            }
        }
    }
}

/// The newest entries of one log, in order.
struct RestorableEntries {
    /// Entries before `first` have been dropped.
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

    /// Returns the last `count` entries; nil when there are fewer.
    func last(_ count: UInt64) -> [[UInt8]]? {
        guard count <= UInt64(entries.count - first) else { return nil }
        return entries.suffix(Int(count)).map(\.bytes)
    }
}
