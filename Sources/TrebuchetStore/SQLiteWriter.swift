internal import CSQLite
internal import Trebuchet

/// The one who writes: what waits together becomes one transaction.
///
/// `@unchecked Sendable`: made by whoever opens the store, then used by the writer's thread alone.
final class SQLiteWriter: @unchecked Sendable {
    /// Writes of one transaction, and bytes, beyond which the next caller's go into another.
    private static let groupWrites = 10_000
    private static let groupBytes = 32 << 20

    let connection: SQLiteConnection
    let generations: StoreGenerations
    private let begin: SQLiteStatement
    private let commit: SQLiteStatement
    private let put: SQLiteStatement
    private let delete: SQLiteStatement
    private let savepoint: SQLiteStatement
    private let goBack: SQLiteStatement
    private let release: SQLiteStatement
    private let logs: LogWriter
    /// After an error of the disk nothing is written any more.
    private var failure: StateStoreError?

    init(_ file: StoreFile, _ options: SQLiteStore.Options) throws(StateStoreError) {
        if file.isNew { try StoreSchema.create(file.path, options) }
        connection = try SQLiteConnection(file, busyTimeout: options.busyTimeout, wayToDisk: options.wayToDisk)
        let schema = try StoreSchema.recognize(connection)
        let remains = try StoreCheck.run(connection, schema: schema, options)
        guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
            throw StateStoreError(
                .unwritable, "\(file.path) cannot have a write-ahead log: its folder must be on a local disk")
        }
        let synchronous = options.durability == .powerLoss ? "FULL" : "NORMAL"
        let pageSize = try connection.integer("PRAGMA page_size") ?? 4096
        try connection.execute(
            """
            PRAGMA synchronous = \(synchronous); PRAGMA journal_size_limit = \(64 << 20); PRAGMA secure_delete = FAST;
            PRAGMA max_page_count = \(max(1, min(options.fileSize / pageSize, 4_294_967_294)))
            """)
        if schema < StoreSchema.version { try StoreTakeover.run(connection, from: schema, options) }
        generations = try StoreGenerations.begin(connection)
        begin = try SQLiteStatement("BEGIN IMMEDIATE", connection)
        commit = try SQLiteStatement("COMMIT", connection)
        put = try SQLiteStatement(
            """
            INSERT INTO entries (namespace, name, value, checksum) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET value = excluded.value, checksum = excluded.checksum
            """, connection)
        delete = try SQLiteStatement("DELETE FROM entries WHERE namespace = ? AND name = ?", connection)
        savepoint = try SQLiteStatement("SAVEPOINT request", connection)
        goBack = try SQLiteStatement("ROLLBACK TO request", connection)
        release = try SQLiteStatement("RELEASE request", connection)
        logs = try LogWriter(connection, remains, generations)
    }

    func handle(_ requests: [WriteRequest]) {
        var first = 0
        while first < requests.count {
            let end = endOfGroup(requests, from: first)
            write(requests[first..<end])
            first = end
        }
    }

    private func endOfGroup(_ requests: [WriteRequest], from first: Int) -> Int {
        var (end, writes, bytes) = (first, 0, 0)
        repeat {
            writes += requests[end].writes.count
            bytes += requests[end].writes.reduce(0) { $0 + $1.byteCount }
            end += 1
        } while end < requests.count && writes < Self.groupWrites && bytes < Self.groupBytes
        return end
    }

    private func write(_ group: ArraySlice<WriteRequest>) {
        do throws(StateStoreError) {
            let outcomes = try transaction(group)
            for (request, outcome) in zip(group, outcomes) { request.answer(outcome) }
        } catch {
            if error.isFinal { failure = error }
            if group.count > 1, error.mayBeOfOneWrite {
                // One caller's must not fail the others'.
                for index in group.indices { write(group[index...index]) }
                return
            }
            for request in group { request.answer(.failure(error)) }
        }
    }

    /// - Returns: an outcome for each request: one that conflicts with a log has done nothing, and the others are done.
    private func transaction(
        _ group: ArraySlice<WriteRequest>
    ) throws(StateStoreError) -> [Result<Void, StateStoreError>] {
        if let failure {
            throw StateStoreError(failure.code, "\(failure.message); nothing is written since, open the store anew")
        }
        return try committed { () throws(StateStoreError) in
            var outcomes: [Result<Void, StateStoreError>] = []
            for request in group { outcomes.append(try run(request, isAlone: group.count == 1)) }
            // So that it keeps pace also when there is never nothing to do.
            if !logs.garbage.isEmpty {
                let writes = group.reduce(0) { $0 + $1.writes.count }
                try logs.garbage.sweep(rows: min(LogGarbage.slice, max(100, 2 * writes)))
            }
            return outcomes
        }
    }

    private func committed<Value>(_ body: () throws(StateStoreError) -> Value) throws(StateStoreError) -> Value {
        do throws(StateStoreError) {
            try begin.run()
            let value = try body()
            try commit.run()
            logs.end(isCommitted: true)
            return value
        } catch {
            // Some errors have rolled it back already.
            try? connection.execute("ROLLBACK")
            logs.end(isCommitted: false)
            throw error
        }
    }

    private func run(_ request: WriteRequest, isAlone: Bool) throws(StateStoreError) -> Result<Void, StateStoreError> {
        logs.beginRequest()
        // A single write does nothing when it conflicts, and one who is alone has the transaction.
        let needsMark = !isAlone && request.writes.count > 1 && request.writes.contains { $0.isOfLog }
        if needsMark { try savepoint.run() }
        do throws(StateStoreError) {
            for write in request.writes { try run(write) }
        } catch {
            guard error.code == .conflict, !isAlone else { throw error }
            if needsMark {
                try goBack.run()
                try release.run()
            }
            logs.undoRequest()
            return .failure(error)
        }
        if needsMark { try release.run() }
        return .success(())
    }

    private func run(_ write: StateWrite) throws(StateStoreError) {
        let (namespace, name) = (write.key.namespace, write.key.name)
        switch write.operation {
        case .put(let value):
            try put.run([namespace, name], blob: value, integer: Int64(Checksum.of(namespace, name, value)))
        case .delete: try delete.run([namespace, name])
        case .append, .snapshotPart, .snapshot, .deleteLog: try logs.run(write)
        }
    }

    /// Lets go of some of what logs have let go of. Called while nothing is asked for.
    ///
    /// - Returns: whether there is more.
    func sweep() -> Bool {
        guard failure == nil, !logs.garbage.isEmpty else { return false }
        do throws(StateStoreError) {
            try committed { () throws(StateStoreError) in try logs.garbage.sweep(rows: LogGarbage.slice) }
            return !logs.garbage.isEmpty
        } catch {
            // What cannot be done now is done with a later write.
            if error.isFinal { failure = error }
            return false
        }
    }
}

extension StateWrite {
    fileprivate var isOfLog: Bool {
        switch operation {
        case .put, .delete: false
        case .append, .snapshotPart, .snapshot, .deleteLog: true
        }
    }
}
