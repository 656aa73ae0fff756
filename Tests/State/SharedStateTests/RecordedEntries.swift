import Synchronization

/// Recorded entries, in order, from any thread.
final class RecordedEntries<Entry: Sendable>: Sendable {
    private let contents = Mutex<[Entry]>([])

    var entries: [Entry] { contents.withLock { $0 } }
    var count: Int { entries.count }

    func add(_ entry: Entry) { contents.withLock { $0.append(entry) } }
}
