internal import Trebuchet

/// Checks the whole content of a file: at its opening, of a copy, or for a report.
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
    /// Collects the damage; nil to stop at the first one.
    private let damage: StoreDamageList?
    private var progress: ProgressReporter
    private var remains = OrphanedLogRows()
    private var logsByEntries: [UInt64: Log] = [:]
    private var logsBySnapshot: [UInt64: Log] = [:]
    private var keysByDraft: [UInt64: StateKey] = [:]

    private init(
        _ connection: SQLiteConnection, _ schema: Int, _ options: SQLiteStore.Options, _ damage: StoreDamageList?
    ) throws(StateStoreError) {
        self.connection = connection
        self.schema = schema
        self.damage = damage
        let pages =
            (try connection.integer("PRAGMA page_count") ?? 0) - (try connection.integer("PRAGMA freelist_count") ?? 0)
        progress = ProgressReporter(options, all: pages * (try connection.integer("PRAGMA page_size") ?? 4096))
    }

    /// Checks a file.
    ///
    /// - Parameters:
    ///   - isThorough: whether SQLite compares its indexes with its tables too, which takes about twice as long.
    ///   - damage: collects all damage; nil to throw the first one.
    /// - Throws: `damaged`.
    @discardableResult
    static func run(
        _ connection: SQLiteConnection, schema: Int, _ options: SQLiteStore.Options, isThorough: Bool = false,
        collecting damage: StoreDamageList? = nil
    ) throws(StateStoreError) -> OrphanedLogRows {
        var check = try StoreIntegrityCheck(connection, schema, options, damage)
        try check.attempt { (check) throws(StateStoreError) in try check.structure(isThorough) }
        try check.attempt { (check) throws(StateStoreError) in try check.values() }
        guard schema > 1 else { return OrphanedLogRows() }
        try check.attempt { (check) throws(StateStoreError) in try check.logs() }
        try check.attempt { (check) throws(StateStoreError) in try check.drafts() }
        try check.attempt { (check) throws(StateStoreError) in try check.entries() }
        try check.attempt { (check) throws(StateStoreError) in try check.parts() }
        return check.remains
    }

    /// Runs a part of the check, the others of which may succeed after its failure.
    private mutating func attempt(
        _ part: (inout Self) throws(StateStoreError) -> Void
    ) throws(StateStoreError) {
        do throws(StateStoreError) { try part(&self) } catch { try report(error) }
    }

    /// Throws an error, or collects it and returns.
    private func report(_ error: StateStoreError) throws(StateStoreError) {
        guard let damage else { throw error }
        damage.add(error.damage(of: connection.path))
    }

    private mutating func structure(_ isThorough: Bool) throws(StateStoreError) {
        let limit = damage == nil ? 1 : StoreDamageList.limit
        let row = try SQLiteStatement("PRAGMA \(isThorough ? "integrity_check" : "quick_check")(\(limit))", connection)
        while try row.step() {
            let text = row.text(0)
            guard text != "ok" else { continue }
            // The name of the database may be in a line before the problems.
            let lines = text.split(separator: "\n").map(String.init)
            let problems = lines.count > 1 ? lines.filter { !$0.hasPrefix("***") } : lines
            for problem in damage == nil ? problems.suffix(1) : problems[...] {
                try report(.damaged(connection.path, problem))
            }
        }
        progress.reportIfDue()
    }

    private mutating func values() throws(StateStoreError) {
        let row = try SQLiteStatement("SELECT namespace, name, value, checksum FROM entries", connection)
        while try row.step() {
            let (namespace, name, value) = (row.bytes(0), row.bytes(1), row.bytes(2))
            let sum = Checksum.of(namespace, name, value)
            if sum != row.integer(3) { try report(.damaged(connection.path, valueOf: row.key)) }
            progress.addBytes(namespace.count + name.count + value.count)
        }
    }

    private mutating func logs() throws(StateStoreError) {
        let row = try SQLiteStatement("SELECT namespace, name, \(LogRow.columns(schema: schema)) FROM logs", connection)
        while try row.step() {
            let log: Log
            do throws(StateStoreError) {
                log = Log(key: row.key, row: try LogRow(row, from: 2, of: row.key, in: connection.path))
            } catch {
                try report(error)
                continue
            }
            logsByEntries[log.row.entries] = log
            logsBySnapshot[log.row.snapshot] = log
            remains.lastID = max(remains.lastID, log.row.entries, log.row.snapshot)
            progress.addBytes(64)
        }
    }

    private mutating func drafts() throws(StateStoreError) {
        let row = try SQLiteStatement("SELECT namespace, name, number, snapshot, checksum FROM log_drafts", connection)
        while try row.step() {
            let draft: UnfinishedSnapshot
            do throws(StateStoreError) {
                draft = try UnfinishedSnapshot(row, from: 2, of: row.key, in: connection.path)
            } catch {
                try report(error)
                continue
            }
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
            if LogChunkTables.checksum(entry: number, base: base, bytes, of: id) != row.integer(4) {
                try report(.damaged(connection.path, entry: number, of: log.key))
            }
            if number <= log.row.number {
                recordGarbage(.entries(of: id, through: log.row.number))
                continue
            }
            if base != last {
                try report(.damaged(connection.path, chain: number, base: base, last: last, of: log.key))
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
            if LogChunkTables.checksum(part: part, bytes, of: id) != row.integer(3) {
                try report(.damaged(connection.path, part: part, of: key))
            }
            // An unfinished snapshot may have missing parts.
            if log != nil, part != index {
                try report(.damaged(connection.path, missingPart: index, of: key))
                // Reported once, and not again for its size.
                logsBySnapshot[id] = nil
                keysByDraft[id] = key
            }
            index += 1
            size += bytes.count
        }
        if let current { try checkSnapshotSize(of: current, index, size) }
        for log in logsBySnapshot.values where log.row.parts > 0 {
            try report(.damaged(connection.path, missingPart: 0, of: log.key))
        }
    }

    /// Checks the number and size of a snapshot's parts after the last one.
    private mutating func checkSnapshotSize(of snapshot: UInt64, _ count: Int, _ size: Int) throws(StateStoreError) {
        guard let log = logsBySnapshot.removeValue(forKey: snapshot) else { return }
        guard count == log.row.parts else {
            return try report(.damaged(connection.path, missingPart: count, of: log.key))
        }
        guard size == log.row.size else { return try report(.damaged(connection.path, size: size, of: log.key)) }
    }
}

extension SQLiteStatement {
    /// The key in the first two columns.
    fileprivate var key: StateKey { StateKey(text(0), text(1)) }
}

/// The damage that a check of a whole file has found.
final class StoreDamageList {
    /// The maximum number of descriptions; further ones are only counted.
    static let limit = 100

    private(set) var descriptions: [String] = []
    private(set) var count = 0

    func add(_ description: String) {
        count += 1
        if descriptions.count < Self.limit { descriptions.append(description) }
    }
}
