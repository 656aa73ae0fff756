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
    private let begin: SQLiteStatement
    private let commit: SQLiteStatement
    private let put: SQLiteStatement
    private let delete: SQLiteStatement
    /// After an error of the disk nothing is written any more.
    private var failure: StateStoreError?

    init(_ file: StoreFile, _ options: SQLiteStore.Options) throws(StateStoreError) {
        if file.isNew { try StoreSchema.create(file.path, options) }
        connection = try SQLiteConnection(file, busyTimeout: options.busyTimeout, wayToDisk: options.wayToDisk)
        try StoreSchema.check(connection)
        guard try connection.text("PRAGMA journal_mode = WAL") == "wal" else {
            throw StateStoreError(
                .unwritable, "\(file.path) cannot have a write-ahead log: its folder must be on a local disk")
        }
        let synchronous = options.durability == .powerLoss ? "FULL" : "NORMAL"
        let pageSize = try connection.integer("PRAGMA page_size") ?? 4096
        try connection.execute(
            """
            PRAGMA synchronous = \(synchronous); PRAGMA journal_size_limit = \(64 << 20);
            PRAGMA max_page_count = \(max(1, min(options.fileSize / pageSize, 4_294_967_294)))
            """)
        begin = try SQLiteStatement("BEGIN IMMEDIATE", connection)
        commit = try SQLiteStatement("COMMIT", connection)
        put = try SQLiteStatement(
            """
            INSERT INTO entries (namespace, name, value, checksum) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET value = excluded.value, checksum = excluded.checksum
            """, connection)
        delete = try SQLiteStatement("DELETE FROM entries WHERE namespace = ? AND name = ?", connection)
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
            bytes += requests[end].writes.reduce(0) { $0 + ($1.value?.count ?? 0) }
            end += 1
        } while end < requests.count && writes < Self.groupWrites && bytes < Self.groupBytes
        return end
    }

    private func write(_ group: ArraySlice<WriteRequest>) {
        let outcome = Result { () throws(StateStoreError) in try transaction(group) }
        if case .failure(let error) = outcome {
            if error.isFinal { failure = error }
            if group.count > 1, error.mayBeOfOneWrite {
                // One caller's must not fail the others'.
                for index in group.indices { write(group[index...index]) }
                return
            }
        }
        for request in group { request.answer(outcome) }
    }

    private func transaction(_ group: ArraySlice<WriteRequest>) throws(StateStoreError) {
        if let failure {
            throw StateStoreError(failure.code, "\(failure.message); nothing is written since, open the store anew")
        }
        do {
            try begin.run()
            for request in group {
                for write in request.writes { try run(write) }
            }
            try commit.run()
        } catch {
            // Some errors have rolled it back already.
            try? connection.execute("ROLLBACK")
            throw error
        }
    }

    private func run(_ write: StateWrite) throws(StateStoreError) {
        let (namespace, name) = (write.key.namespace, write.key.name)
        guard let value = write.value else { return try delete.run([namespace, name]) }
        try put.run([namespace, name], blob: value, integer: Int64(Checksum.of(namespace, name, value)))
    }
}
