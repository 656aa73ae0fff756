/// A log in memory.
package struct MemoryLog {
    private var snapshot: LogSnapshot?
    private var entries: [LogEntry] = []
    /// The last changes before the snapshot, which lead to it: for readers that are only slightly behind. Limited in number and
    /// bytes.
    package private(set) var earlierEntries: [LogEntry] = []
    private static let maximumEarlierEntries = 4_096
    static let maximumEarlierEntryBytes = 1 << 20
    private let keepsEarlierEntries: Bool
    /// The parts of an incomplete snapshot.
    private var parts: (number: UInt64, bytes: [Int: [UInt8]]) = (0, [:])

    /// Creates an empty log.
    ///
    /// - Parameter keepsEarlierEntries: whether changes before a snapshot are kept for a time.
    package init(keepsEarlierEntries: Bool = false) { self.keepsEarlierEntries = keepsEarlierEntries }

    package var isEmpty: Bool { snapshot == nil && parts.bytes.isEmpty }
    package var stored: StoredLog? { snapshot.map { StoredLog(snapshot: $0, entries: entries) } }
    /// The size of the snapshot and the entries in bytes.
    package var bytes: Int { entries.reduce(snapshot?.bytes.count ?? 0) { $0 + $1.bytes.count } }

    /// The parts of an incomplete snapshot.
    package var futureParts: [(index: Int, number: UInt64, bytes: [UInt8])] {
        parts.bytes.sorted { $0.key < $1.key }.map { ($0.key, parts.number, $0.value) }
    }

    /// Applies a write.
    ///
    /// - Throws: `conflict`.
    package mutating func apply(_ write: StateWrite) throws(StateStoreError) {
        switch write.operation {
        case .put, .delete: break
        case .append(let entry): try append(entry, write.key)
        case .snapshotPart(let bytes, let index, let number): appendPart(bytes, index: index, number: number)
        case .snapshot(let snapshot): try replaceSnapshot(snapshot, write.key)
        case .deleteLog: self = MemoryLog(keepsEarlierEntries: keepsEarlierEntries)
        }
    }

    /// Continues the versions under another epoch.
    package mutating func startEpoch(_ epoch: String) {
        snapshot = snapshot.map {
            LogSnapshot(epoch: epoch, version: $0.version, partCount: $0.partCount, bytes: $0.bytes)
        }
    }

    /// Appends an entry.
    ///
    /// - Throws: `conflict`.
    private mutating func append(_ entry: LogEntry, _ key: StateKey) throws(StateStoreError) {
        let last = entries.last?.version ?? snapshot?.version
        guard last == entry.baseVersion, entry.version > entry.baseVersion else { throw .conflict(key, last, entry) }
        entries.append(entry)
    }

    private mutating func appendPart(_ bytes: [UInt8], index: Int, number: UInt64) {
        if parts.number != number { parts = (number, [:]) }
        parts.bytes[index] = bytes
    }

    /// Replaces the snapshot, and removes the entries up to it.
    ///
    /// - Throws: `conflict`.
    private mutating func replaceSnapshot(_ snapshot: LogSnapshot, _ key: StateKey) throws(StateStoreError) {
        var whole: [UInt8] = []
        for index in 0..<snapshot.partCount {
            guard parts.number == snapshot.version, let part = parts.bytes[index] else {
                throw .missingPart(index, of: snapshot, key)
            }
            whole += part
        }
        whole += snapshot.bytes
        parts = (0, [:])
        let isSame = self.snapshot.map { $0.epoch.utf8.elementsEqual(snapshot.epoch.utf8) } ?? false
        let later = isSame ? entries.filter { $0.version > snapshot.version } : []
        if let first = later.first, first.baseVersion != snapshot.version {
            throw .conflict(key, first.baseVersion, first)
        }
        // Snapshots of event logs remove earlier entries intentionally.
        earlierEntries = isSame && keepsEarlierEntries && !whole.isEmpty ? leading(to: snapshot.version) : []
        self.snapshot = LogSnapshot(epoch: snapshot.epoch, version: snapshot.version, bytes: whole)
        entries = later
    }

    package var earlierEntryBytes: Int { earlierEntries.reduce(0) { $0 + $1.bytes.count } }

    /// Adds the next change before the snapshot.
    package mutating func appendEarlierEntry(_ entry: LogEntry) {
        guard keepsEarlierEntries, earlierEntries.last.map({ $0.version == entry.baseVersion }) ?? true else { return }
        earlierEntries.append(entry)
    }

    private func leading(to number: UInt64) -> [LogEntry] {
        let all = earlierEntries + entries.prefix { $0.version <= number }
        guard all.last?.version == number else { return [] }
        var (start, bytes) = (all.endIndex, 0)
        while start > all.startIndex, all.endIndex - start < Self.maximumEarlierEntries {
            bytes += all[start - 1].bytes.count
            guard bytes <= Self.maximumEarlierEntryBytes else { break }
            start -= 1
        }
        return Array(all[start...])
    }
}

extension StateStoreError {
    /// Creates the error for an entry that does not follow the last one of its log. For custom stores.
    ///
    /// - Parameter last: the number of the log's last entry or snapshot; nil if there is no log.
    public static func conflict(_ key: StateKey, _ last: UInt64?, _ entry: LogEntry) -> Self {
        let state = last.map { "ends at \($0)" } ?? "does not exist"
        return Self(
            .conflict,
            "the log of '\(key)' \(state), so the change from \(entry.baseVersion) to \(entry.version) does not follow it: "
                + "another process has written to it")
    }

    /// Creates the error for a snapshot whose part was not written. For custom stores.
    public static func missingPart(_ index: Int, of snapshot: LogSnapshot, _ key: StateKey) -> Self {
        Self(.conflict, "part \(index) of the snapshot \(snapshot.version) of '\(key)' was not written")
    }
}
