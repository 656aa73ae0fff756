internal import Trebuchet

/// The SQLite statements of the log writer.
final class LogStatements {
    private let connection: SQLiteConnection
    private let getRow, putRow, deleteRow: SQLiteStatement
    private let getDraft, putDraft, deleteDraft: SQLiteStatement
    private let insertEntry, lastEntry, firstEntry: SQLiteStatement
    private let putPart, sizesOfParts, deleteParts: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(StateStoreError) {
        self.connection = connection
        getRow = try SQLiteStatement(
            "SELECT \(LogRow.columns) FROM logs WHERE namespace = ? AND name = ?", connection)
        putRow = try SQLiteStatement(
            "INSERT OR REPLACE INTO logs (namespace, name, \(LogRow.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            connection)
        deleteRow = try SQLiteStatement("DELETE FROM logs WHERE namespace = ? AND name = ?", connection)
        getDraft = try SQLiteStatement(
            "SELECT number, snapshot, checksum FROM log_drafts WHERE namespace = ? AND name = ?", connection)
        putDraft = try SQLiteStatement(
            """
            INSERT OR REPLACE INTO log_drafts (namespace, name, number, snapshot, checksum) VALUES (?, ?, ?, ?, ?)
            """, connection)
        deleteDraft = try SQLiteStatement("DELETE FROM log_drafts WHERE namespace = ? AND name = ?", connection)
        insertEntry = try SQLiteStatement(
            "INSERT INTO log_entries (log, number, base, checksum, bytes) VALUES (?, ?, ?, ?, ?)", connection)
        lastEntry = try SQLiteStatement(
            "SELECT number FROM log_entries WHERE log = ? ORDER BY number DESC LIMIT 1", connection)
        firstEntry = try SQLiteStatement(
            "SELECT number, base FROM log_entries WHERE log = ? AND number > ? ORDER BY number LIMIT 1", connection)
        putPart = try SQLiteStatement(
            "INSERT OR REPLACE INTO log_parts (snapshot, part, checksum, bytes) VALUES (?, ?, ?, ?)", connection)
        sizesOfParts = try SQLiteStatement(
            "SELECT part, length(bytes) FROM log_parts WHERE snapshot = ? ORDER BY part", connection)
        deleteParts = try SQLiteStatement("DELETE FROM log_parts WHERE snapshot = ? AND part >= ?", connection)
    }

    // MARK: Logs

    func row(of key: StateKey) throws(StateStoreError) -> LogRow? {
        defer { getRow.reset() }
        try getRow.bind(key)
        return try getRow.step() ? try LogRow(getRow, of: key, in: connection.path) : nil
    }

    func put(_ row: LogRow, _ key: StateKey) throws(StateStoreError) {
        try putRow.bind(key)
        try putRow.bind(row.incarnations.current, at: 2)
        let numbers = [
            row.number, row.entries, row.snapshot, UInt64(row.parts), UInt64(row.size), row.generation,
        ]
        for (index, number) in numbers.enumerated() { try putRow.bind(number, at: 3 + index) }
        try putRow.bind(UInt64(row.checksum(key)), at: 10)
        try row.incarnations.earlierBytes.withBytes { bytes throws(StateStoreError) in
            try putRow.run(blob: bytes, at: 9)
        }
    }

    func deleteRow(_ key: StateKey) throws(StateStoreError) { try deleteRow.run([key.namespace, key.name]) }

    // MARK: Unfinished snapshots

    func draft(of key: StateKey) throws(StateStoreError) -> UnfinishedSnapshot? {
        defer { getDraft.reset() }
        try getDraft.bind(key)
        return try getDraft.step() ? try UnfinishedSnapshot(getDraft, of: key, in: connection.path) : nil
    }

    func put(_ draft: UnfinishedSnapshot, _ key: StateKey) throws(StateStoreError) {
        try putDraft.bind(key)
        let numbers = [draft.number, draft.snapshot, UInt64(draft.checksum(key))]
        for (index, number) in numbers.enumerated() { try putDraft.bind(number, at: 2 + index) }
        try putDraft.run()
    }

    func deleteDraft(_ key: StateKey) throws(StateStoreError) { try deleteDraft.run([key.namespace, key.name]) }

    // MARK: Entries

    func insert(_ entry: LogEntry, into log: UInt64) throws(StateStoreError) {
        try entry.bytes.withBytes { bytes throws(StateStoreError) in
            let sum = LogChunkTables.checksum(entry: entry.version, base: entry.baseVersion, bytes, of: log)
            let numbers = [log, entry.version, entry.baseVersion, UInt64(sum)]
            for (index, number) in numbers.enumerated() { try insertEntry.bind(number, at: index) }
            try insertEntry.run(blob: bytes, at: 4)
        }
    }

    func lastEntry(of log: UInt64) throws(StateStoreError) -> UInt64? {
        defer { lastEntry.reset() }
        try lastEntry.bind(log, at: 0)
        return try lastEntry.step() ? lastEntry.number(0) : nil
    }

    /// Returns the first entry, without its bytes.
    func firstEntry(of log: UInt64, after number: UInt64) throws(StateStoreError) -> LogEntry? {
        defer { firstEntry.reset() }
        try firstEntry.bind(log, at: 0)
        try firstEntry.bind(number, at: 1)
        guard try firstEntry.step() else { return nil }
        return LogEntry(version: firstEntry.number(0), baseVersion: firstEntry.number(1), bytes: [])
    }

    // MARK: Parts

    func put(_ bytes: UnsafeRawBufferPointer, part index: Int, of snapshot: UInt64) throws(StateStoreError) {
        let sum = LogChunkTables.checksum(part: index, bytes, of: snapshot)
        for (column, number) in [snapshot, UInt64(index), UInt64(sum)].enumerated() {
            try putPart.bind(number, at: column)
        }
        try putPart.run(blob: bytes, at: 3)
    }

    /// Writes bytes as parts.
    ///
    /// - Returns: the number of parts.
    func put(_ bytes: [UInt8], behind parts: Int, of snapshot: UInt64) throws(StateStoreError) -> Int {
        try bytes.withBytes { bytes throws(StateStoreError) in
            var count = 0
            while count * LogChunkTables.partSize < bytes.count {
                let begin = count * LogChunkTables.partSize
                let part = bytes[begin..<min(begin + LogChunkTables.partSize, bytes.count)]
                try put(UnsafeRawBufferPointer(rebasing: part), part: parts + count, of: snapshot)
                count += 1
            }
            return count
        }
    }

    /// Returns the number of consecutive parts from the first, at most `most`, and their size in bytes.
    func sizeOfParts(_ snapshot: UInt64, most: Int) throws(StateStoreError) -> (count: Int, size: Int) {
        defer { sizesOfParts.reset() }
        try sizesOfParts.bind(snapshot, at: 0)
        var (count, size) = (0, 0)
        while count < most, try sizesOfParts.step(), sizesOfParts.integer(0) == count {
            count += 1
            size += sizesOfParts.integer(1)
        }
        return (count, size)
    }

    func deleteParts(of snapshot: UInt64, from index: Int) throws(StateStoreError) {
        try deleteParts.bind(snapshot, at: 0)
        try deleteParts.bind(UInt64(index), at: 1)
        try deleteParts.run()
    }
}
