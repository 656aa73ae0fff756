internal import CSQLite
internal import Platform
internal import Synchronization
internal import Trebuchet

/// Writes a store: combines waiting requests into one transaction. Created by the thread that opens the store, then used only by the
/// writer's thread.
final class SQLiteWriter {
    /// The numbers of writes and bytes in a transaction beyond which the next request starts another one.
    private static let groupWrites = 10_000
    private static let groupBytes = 2 << 20
    /// The number of bytes in a transaction of large requests. A small request waits for one such transaction at most.
    private static let groupBytesOfLarge = 512 << 10
    /// The size in bytes above which a request is large: smaller requests are written first.
    private static let largeRequest = 64 << 10

    /// The large requests that wait, and later requests with one of their keys.
    private var large = WorkQueue<WriteRequest>()
    /// The number of waiting requests of `large` for each key.
    private var keysOfLarge: [StateKey: Int] = [:]
    let connection: SQLiteConnection
    let generations: StoreGenerations
    private let begin: SQLiteStatement
    private let commit: SQLiteStatement
    private let put: SQLiteStatement
    private let delete: SQLiteStatement
    private let savepoint: SQLiteStatement
    private let rollBack: SQLiteStatement
    private let release: SQLiteStatement
    private let logs: LogWriter
    let names: FileNames
    let status = WriterStatus()
    private var failure: StateStoreError? {
        get { status.failure.withLock { $0 } }
        set { status.failure.withLock { $0 = newValue } }
    }

    init(_ file: StoreFile, _ options: SQLiteStore.Options) throws(StateStoreError) {
        if file.isNew {
            try StoreSchema.create(file.path, options)
            try file.lockDatabase()
        }
        connection = try SQLiteConnection(file, busyTimeout: options.busyTimeout, wayToDisk: options.wayToDisk)
        let schema = try StoreSchema.recognize(connection)
        let remains = try StoreIntegrityCheck.run(connection, schema: schema, options)
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
        if schema < StoreSchema.version { try StoreSchemaMigration.run(connection, from: schema, options) }
        generations = try StoreGenerations.startGeneration(connection)
        begin = try SQLiteStatement("BEGIN IMMEDIATE", connection)
        commit = try SQLiteStatement("COMMIT", connection)
        put = try SQLiteStatement(
            """
            INSERT INTO entries (namespace, name, value, checksum) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET value = excluded.value, checksum = excluded.checksum
            """, connection)
        delete = try SQLiteStatement("DELETE FROM entries WHERE namespace = ? AND name = ?", connection)
        savepoint = try SQLiteStatement("SAVEPOINT request", connection)
        rollBack = try SQLiteStatement("ROLLBACK TO request", connection)
        release = try SQLiteStatement("RELEASE request", connection)
        logs = try LogWriter(connection, remains, generations)
        names = FileNames(of: ["", "-wal"].map { file.path + $0 })
    }

    /// Executes the small requests and then one transaction of large ones. Returns whether large ones are left.
    ///
    /// A small request waits for at most one transaction of large ones, however many are queued. Requests with a common key keep
    /// their order.
    func handle(_ requests: [WriteRequest]) -> Bool {
        var small = WorkQueue<WriteRequest>()
        for request in requests {
            if mustWait(request) {
                large.append(request)
                for write in request.writes { keysOfLarge[write.key, default: 0] += 1 }
            } else {
                small.append(request)
            }
        }
        while !small.isEmpty { write(Self.takeGroup(&small, upTo: Self.groupBytes)[...]) }
        guard !large.isEmpty else { return false }
        let group = Self.takeGroup(&large, upTo: Self.groupBytesOfLarge)
        for request in group {
            for write in request.writes {
                let count = keysOfLarge[write.key, default: 1] - 1
                keysOfLarge[write.key] = count == 0 ? nil : count
            }
        }
        write(group[...])
        return !large.isEmpty
    }

    private func mustWait(_ request: WriteRequest) -> Bool {
        request.byteCount > Self.largeRequest
            || !keysOfLarge.isEmpty && request.writes.contains { keysOfLarge[$0.key] != nil }
    }

    /// Removes the requests of the next transaction.
    private static func takeGroup(_ requests: inout WorkQueue<WriteRequest>, upTo limit: Int) -> [WriteRequest] {
        var group: [WriteRequest] = []
        var (writes, bytes) = (0, 0)
        repeat {
            let request = requests.removeFirst()
            writes += request.writes.count
            bytes += request.byteCount
            group.append(request)
        } while !requests.isEmpty && writes < groupWrites && bytes < limit
        return group
    }

    private func write(_ group: ArraySlice<WriteRequest>) {
        do throws(StateStoreError) {
            let outcomes = try transaction(group)
            for (request, outcome) in zip(group, outcomes) { request.answer(outcome) }
        } catch {
            // The first one: later ones repeat it.
            if error.isFinal, failure == nil { failure = error }
            if group.count > 1, error.mayBeOfOneWrite {
                // A failed request must not fail those of other callers.
                for index in group.indices { write(group[index...index]) }
                return
            }
            for request in group { request.answer(.failure(error)) }
        }
    }

    /// Executes a group in one transaction.
    ///
    /// - Returns: an outcome for each request. A request that conflicts with a log has had no effect, and the others
    ///   are executed.
    private func transaction(
        _ group: ArraySlice<WriteRequest>
    ) throws(StateStoreError) -> [Result<Void, StateStoreError>] {
        if let failure { throw failure.disablingWrites }
        return try committed { () throws(StateStoreError) in
            var outcomes: [Result<Void, StateStoreError>] = []
            for request in group { outcomes.append(try run(request, isAlone: group.count == 1)) }
            // Here too, so that deletion keeps pace with a writer that is never idle.
            if !logs.garbage.isEmpty {
                let writes = group.reduce(0) { $0 + $1.writes.count }
                try logs.garbage.sweep(rows: min(LogGarbageCollector.slice, max(100, 2 * writes)))
            }
            return outcomes
        }
    }

    private func committed<Value>(_ body: () throws(StateStoreError) -> Value) throws(StateStoreError) -> Value {
        do throws(StateStoreError) {
            try begin.run()
            let value = try body()
            // Before the commit, so that a refused write has no effect; and after it, because only what the next process
            // finds may be acknowledged.
            try names.check()
            try commit.run()
            try names.check()
            logs.endTransaction(isCommitted: true)
            return value
        } catch {
            // Some errors have already rolled it back.
            try? connection.execute("ROLLBACK")
            logs.endTransaction(isCommitted: false)
            throw error
        }
    }

    private func run(_ request: WriteRequest, isAlone: Bool) throws(StateStoreError) -> Result<Void, StateStoreError> {
        logs.beginRequest()
        // A single write has no effect when it conflicts, and a single request has its own transaction.
        let needsMark = !isAlone && request.writes.count > 1 && request.writes.contains { $0.isOfLog }
        if needsMark { try savepoint.run() }
        do throws(StateStoreError) {
            for write in request.writes { try run(write) }
        } catch {
            guard error.code == .conflict, !isAlone else { throw error }
            if needsMark {
                try rollBack.run()
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

    /// Deletes some of the rows that logs have released. Called when there are no requests.
    ///
    /// - Returns: whether there is more.
    func sweep() -> Bool {
        guard failure == nil, !logs.garbage.isEmpty else { return false }
        do throws(StateStoreError) {
            try committed { () throws(StateStoreError) in try logs.garbage.sweep(rows: LogGarbageCollector.slice) }
            return !logs.garbage.isEmpty
        } catch {
            // Postponed to a later write.
            if error.isFinal { failure = error }
            return false
        }
    }
}

/// The part of a writer's state that any thread may read.
final class WriterStatus: Sendable {
    /// The error after which the writer refuses all requests: of the disk, or because a file is not in its place.
    let failure = Mutex<StateStoreError?>(nil)
}

extension StateWrite {
    fileprivate var isOfLog: Bool {
        switch operation {
        case .put, .delete: false
        case .append, .snapshotPart, .snapshot, .deleteLog: true
        }
    }
}
