internal import Trebuchet

/// Checks the whole content of a file at its opening.
///
/// SQLite detects damage to its own structure; checksums detect it in the data of the store.
struct StoreIntegrityCheck {
    /// A log whose parts and entries are to be found.
    private struct Log {
        let key: StateKey
        let row: LogRow
    }

    private let connection: SQLiteConnection
    private let schema: Int
    private var progress: ProgressReporter
    private var remains = OrphanedLogRows()
    private var logsByEntries: [UInt64: Log] = [:]
    private var logsBySnapshot: [UInt64: Log] = [:]
    private var keysByDraft: [UInt64: StateKey] = [:]

    private init(
        _ connection: SQLiteConnection, _ schema: Int, _ options: SQLiteStore.Options
    ) throws(StateStoreError) {
        self.connection = connection
        self.schema = schema
        let pages =
            (try connection.integer("PRAGMA page_count") ?? 0) - (try connection.integer("PRAGMA freelist_count") ?? 0)
        progress = ProgressReporter(options, all: pages * (try connection.integer("PRAGMA page_size") ?? 4096))
    }

    /// Checks a file.
    ///
    /// - Throws: `damaged`.
    static func run(
        _ connection: SQLiteConnection, schema: Int, _ options: SQLiteStore.Options
    ) throws(StateStoreError) -> OrphanedLogRows {
        var check = try StoreIntegrityCheck(connection, schema, options)
        try check.structure()
        try check.values()
        guard schema > 1 else { return OrphanedLogRows() }
        try check.logs()
        try check.drafts()
        try check.entries()
        try check.parts()
        return check.remains
    }

    private mutating func structure() throws(StateStoreError) {
        if let problem = try connection.text("PRAGMA quick_check(1)"), problem != "ok" {
            throw .damaged(connection.path, problem.split(separator: "\n").last.map(String.init) ?? problem)
        }
        progress.reportIfDue()
    }

    private mutating func values() throws(StateStoreError) {
        let row = try SQLiteStatement("SELECT namespace, name, value, checksum FROM entries", connection)
        while try row.step() {
            let (namespace, name, value) = (row.bytes(0), row.bytes(1), row.bytes(2))
            let sum = Checksum.of(namespace, name, value)
            if sum != row.integer(3) { try StoreSchema.verify(sum, row.integer(3), connection.path, row.key) }
            progress.addBytes(namespace.count + name.count + value.count)
        }
    }

    private mutating func logs() throws(StateStoreError) {
        let row = try SQLiteStatement("SELECT namespace, name, \(LogRow.columns(schema: schema)) FROM logs", connection)
        while try row.step() {
            let log = Log(key: row.key, row: try LogRow(row, from: 2, of: row.key, in: connection.path))
            logsByEntries[log.row.entries] = log
            logsBySnapshot[log.row.snapshot] = log
            remains.lastID = max(remains.lastID, log.row.entries, log.row.snapshot)
            progress.addBytes(64)
        }
    }

    private mutating func drafts() throws(StateStoreError) {
        let row = try SQLiteStatement("SELECT namespace, name, number, snapshot, checksum FROM log_drafts", connection)
        while try row.step() {
            let draft = try UnfinishedSnapshot(row, from: 2, of: row.key, in: connection.path)
            keysByDraft[draft.snapshot] = row.key
            remains.lastID = max(remains.lastID, draft.snapshot)
        }
    }

    private mutating func entries() throws(StateStoreError) {
        let row = try SQLiteStatement(
            "SELECT log, number, base, bytes, checksum FROM log_entries ORDER BY log, number", connection)
        var (current, last) = (nil as UInt64?, 0 as UInt64)
        var log: Log?
        while try row.step() {
            let (id, number, base, bytes) = (row.number(0), row.number(1), row.number(2), row.bytes(3))
            if id != current {
                (current, log) = (id, logsByEntries[id])
                last = log?.row.number ?? 0
                remains.lastID = max(remains.lastID, id)
            }
            progress.addBytes(bytes.count + 16)
            guard let log else {
                recordGarbage(.entries(of: id, through: UInt64(Int64.max)))
                continue
            }
            guard LogChunkTables.checksum(entry: number, base: base, bytes, of: id) == row.integer(4) else {
                throw .damaged(connection.path, entry: number, of: log.key)
            }
            if number <= log.row.number {
                recordGarbage(.entries(of: id, through: log.row.number))
                continue
            }
            guard base == last else {
                throw .damaged(connection.path, chain: number, base: base, last: last, of: log.key)
            }
            last = number
        }
    }

    /// Records garbage. The rows of one item are consecutive.
    private mutating func recordGarbage(_ item: LogGarbageCollector.Item) {
        if remains.garbage.last != item { remains.garbage.append(item) }
    }

    private mutating func parts() throws(StateStoreError) {
        let row = try SQLiteStatement(
            "SELECT snapshot, part, bytes, checksum FROM log_parts ORDER BY snapshot, part", connection)
        var current: UInt64?
        var (index, size) = (0, 0)
        while try row.step() {
            let (id, bytes) = (row.number(0), row.bytes(2))
            if id != current {
                if let current { try checkSnapshotSize(of: current, index, size) }
                (current, index, size) = (id, 0, 0)
                remains.lastID = max(remains.lastID, id)
            }
            progress.addBytes(bytes.count + 16)
            let log = logsBySnapshot[id]
            guard let key = log?.key ?? keysByDraft[id] else {
                recordGarbage(.parts(of: id))
                continue
            }
            let part = row.integer(1)
            guard LogChunkTables.checksum(part: part, bytes, of: id) == row.integer(3) else {
                throw .damaged(connection.path, part: part, of: key)
            }
            // An unfinished snapshot may have missing parts.
            guard log == nil || part == index else { throw .damaged(connection.path, missingPart: index, of: key) }
            index += 1
            size += bytes.count
        }
        if let current { try checkSnapshotSize(of: current, index, size) }
        if let log = logsBySnapshot.values.first(where: { $0.row.parts > 0 }) {
            throw .damaged(connection.path, missingPart: 0, of: log.key)
        }
    }

    /// Checks the number and size of a snapshot's parts after the last one.
    private mutating func checkSnapshotSize(of snapshot: UInt64, _ count: Int, _ size: Int) throws(StateStoreError) {
        guard let log = logsBySnapshot.removeValue(forKey: snapshot) else { return }
        guard count == log.row.parts else { throw .damaged(connection.path, missingPart: count, of: log.key) }
        guard size == log.row.size else { throw .damaged(connection.path, size: size, of: log.key) }
    }
}

extension SQLiteStatement {
    /// The key in the first two columns.
    fileprivate var key: StateKey { StateKey(text(0), text(1)) }
}
