internal import Trebuchet

/// Reads logs, on the reader's thread.
final class LogReader {
    private let connection: SQLiteConnection
    private let generations: StoreGenerations
    private let row: SQLiteStatement
    private let parts: SQLiteStatement
    private let entries: SQLiteStatement

    init(_ connection: SQLiteConnection, _ generations: StoreGenerations) throws(StateStoreError) {
        self.connection = connection
        self.generations = generations
        row = try SQLiteStatement(
            "SELECT \(LogRow.columns) FROM logs WHERE namespace = ? AND name = ?", connection)
        parts = try SQLiteStatement(
            "SELECT part, bytes, checksum FROM log_parts WHERE snapshot = ? ORDER BY part", connection)
        entries = try SQLiteStatement(
            "SELECT number, base, bytes, checksum FROM log_entries WHERE log = ? AND number > ? ORDER BY number",
            connection)
    }

    /// Returns a log.
    ///
    /// - Throws: `damaged` if a row is missing or changed.
    func log(_ key: StateKey) throws(StateStoreError) -> StoredLog? {
        // In one transaction, because the writer may be deleting rows meanwhile.
        try connection.execute("BEGIN")
        defer { try? connection.execute("COMMIT") }
        guard let row = try row(of: key) else { return nil }
        let bytes = try snapshot(row, key)
        let entries = try entries(row, key)
        let incarnations = generations.resume(row, at: entries.last?.version ?? row.number).incarnations
        return StoredLog(
            snapshot: LogSnapshot(epoch: incarnations.current, version: row.number, bytes: bytes), entries: entries,
            earlierIncarnations: incarnations.earlier)
    }

    private func row(of key: StateKey) throws(StateStoreError) -> LogRow? {
        defer { row.reset() }
        try row.bind(key.namespace, at: 0)
        try row.bind(key.name, at: 1)
        return try row.step() ? try LogRow(row, of: key, in: connection.path) : nil
    }

    private func snapshot(_ row: LogRow, _ key: StateKey) throws(StateStoreError) -> [UInt8] {
        defer { parts.reset() }
        try parts.bind(row.snapshot, at: 0)
        var whole: [UInt8] = []
        whole.reserveCapacity(row.size)
        var index = 0
        while try parts.step() {
            guard parts.integer(0) == index, index < row.parts else { break }
            let bytes = parts.bytes(1)
            guard LogChunkTables.checksum(part: index, bytes, of: row.snapshot) == parts.integer(2) else {
                throw .damaged(connection.path, part: index, of: key)
            }
            whole += bytes
            index += 1
        }
        guard index == row.parts else { throw .damaged(connection.path, missingPart: index, of: key) }
        guard whole.count == row.size else { throw .damaged(connection.path, size: whole.count, of: key) }
        return whole
    }

    private func entries(_ row: LogRow, _ key: StateKey) throws(StateStoreError) -> [LogEntry] {
        defer { entries.reset() }
        try entries.bind(row.entries, at: 0)
        try entries.bind(row.number, at: 1)
        var found: [LogEntry] = []
        var last = row.number
        while try entries.step() {
            let (number, base, bytes) = (entries.number(0), entries.number(1), entries.bytes(2))
            guard LogChunkTables.checksum(entry: number, base: base, bytes, of: row.entries) == entries.integer(3)
            else {
                throw .damaged(connection.path, entry: number, of: key)
            }
            guard base == last else {
                throw .damaged(connection.path, chain: number, base: base, last: last, of: key)
            }
            found.append(LogEntry(version: number, baseVersion: base, bytes: Array(bytes)))
            last = number
        }
        return found
    }
}
