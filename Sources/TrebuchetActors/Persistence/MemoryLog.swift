/// A log in memory.
package struct MemoryLog {
    private var snapshot: LogSnapshot?
    private var entries: [LogEntry] = []
    /// The last changes before the snapshot, which lead to it: for readers who are not far behind. At most so many, and so many bytes.
    package private(set) var passed: [LogEntry] = []
    private static let mostPassed = 4_096
    static let mostPassedBytes = 1 << 20
    private let keepsPassed: Bool
    /// Of a snapshot to come.
    private var parts: (number: UInt64, bytes: [Int: [UInt8]]) = (0, [:])

    /// - Parameter keepsPassed: whether changes stay for a while that a snapshot makes needless.
    package init(keepsPassed: Bool = false) { self.keepsPassed = keepsPassed }

    package var isEmpty: Bool { snapshot == nil && parts.bytes.isEmpty }
    package var stored: StoredLog? { snapshot.map { StoredLog(snapshot: $0, entries: entries) } }
    /// Of the snapshot and the entries.
    package var bytes: Int { entries.reduce(snapshot?.bytes.count ?? 0) { $0 + $1.bytes.count } }

    /// Of a snapshot that is not there yet.
    package var partsToCome: [(index: Int, number: UInt64, bytes: [UInt8])] {
        parts.bytes.sorted { $0.key < $1.key }.map { ($0.key, parts.number, $0.value) }
    }

    /// - Throws: `conflict`.
    package mutating func apply(_ write: StateWrite) throws(StateStoreError) {
        switch write.operation {
        case .put, .delete: break
        case .append(let entry): try append(entry, write.key)
        case .snapshotPart(let bytes, let index, let number): add(part: bytes, index: index, number: number)
        case .snapshot(let snapshot): try take(snapshot, write.key)
        case .deleteLog: self = MemoryLog(keepsPassed: keepsPassed)
        }
    }

    /// The versions go on, and are those of another epoch from now on.
    package mutating func begin(_ epoch: String) {
        snapshot = snapshot.map { LogSnapshot(epoch: epoch, number: $0.number, parts: $0.parts, bytes: $0.bytes) }
    }

    /// - Throws: `conflict`.
    private mutating func append(_ entry: LogEntry, _ key: StateKey) throws(StateStoreError) {
        let last = entries.last?.number ?? snapshot?.number
        guard last == entry.base, entry.number > entry.base else { throw .conflict(key, last, entry) }
        entries.append(entry)
    }

    private mutating func add(part bytes: [UInt8], index: Int, number: UInt64) {
        if parts.number != number { parts = (number, [:]) }
        parts.bytes[index] = bytes
    }

    /// - Throws: `conflict`.
    private mutating func take(_ snapshot: LogSnapshot, _ key: StateKey) throws(StateStoreError) {
        var whole: [UInt8] = []
        for index in 0..<snapshot.parts {
            guard parts.number == snapshot.number, let part = parts.bytes[index] else {
                throw .missingPart(index, of: snapshot, key)
            }
            whole += part
        }
        whole += snapshot.bytes
        parts = (0, [:])
        let isSame = self.snapshot.map { $0.epoch.utf8.elementsEqual(snapshot.epoch.utf8) } ?? false
        let later = isSame ? entries.filter { $0.number > snapshot.number } : []
        if let first = later.first, first.base != snapshot.number { throw .conflict(key, first.base, first) }
        // Of events what a snapshot lets go of is gone on purpose.
        passed = isSame && keepsPassed && !whole.isEmpty ? leading(to: snapshot.number) : []
        self.snapshot = LogSnapshot(epoch: snapshot.epoch, number: snapshot.number, bytes: whole)
        entries = later
    }

    package var passedBytes: Int { passed.reduce(0) { $0 + $1.bytes.count } }

    /// One more before the snapshot, behind those that are there.
    package mutating func add(passed entry: LogEntry) {
        guard keepsPassed, passed.last.map({ $0.number == entry.base }) ?? true else { return }
        passed.append(entry)
    }

    private func leading(to number: UInt64) -> [LogEntry] {
        let all = passed + entries.prefix { $0.number <= number }
        guard all.last?.number == number else { return [] }
        var (start, bytes) = (all.endIndex, 0)
        while start > all.startIndex, all.endIndex - start < Self.mostPassed {
            bytes += all[start - 1].bytes.count
            guard bytes <= Self.mostPassedBytes else { break }
            start -= 1
        }
        return Array(all[start...])
    }
}

extension StateStoreError {
    /// For a store of your own: an entry does not follow the last one of its log.
    ///
    /// - Parameter last: the number of the log's last entry or snapshot; nil when there is no log.
    public static func conflict(_ key: StateKey, _ last: UInt64?, _ entry: LogEntry) -> Self {
        let place = last.map { "is at \($0)" } ?? "is not there"
        return Self(
            .conflict,
            "the log of '\(key)' \(place), and a change from \(entry.base) to \(entry.number) does not follow: "
                + "somebody else has written it")
    }

    /// For a store of your own: a snapshot counts on a part that was not written.
    public static func missingPart(_ index: Int, of snapshot: LogSnapshot, _ key: StateKey) -> Self {
        Self(.conflict, "part \(index) of the snapshot \(snapshot.number) of '\(key)' was not written")
    }
}
