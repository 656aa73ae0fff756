internal import CSQLite
internal import Glibc
internal import Trebuchet

/// Migrates a file of an older schema in place, after a copy.
///
/// The migration is one transaction: after any interruption, the file has either the old or the new schema. The copy
/// is complete and synced before it; a copy from an interrupted attempt is replaced.
enum StoreSchemaMigration {
    static func copy(of path: String, schema: Int) -> String { "\(path).schema\(schema)" }

    static func run(
        _ connection: SQLiteConnection, from schema: Int, _ options: SQLiteStore.Options
    ) throws(StateStoreError) {
        try copy(connection, schema, options)
        let synchronous = try connection.integer("PRAGMA synchronous") ?? 2
        try connection.execute("PRAGMA synchronous = FULL")
        do {
            try connection.execute("BEGIN IMMEDIATE; \(StoreSchema.changes(from: schema)) COMMIT")
        } catch {
            try? connection.execute("ROLLBACK")
            throw error
        }
        try connection.execute("PRAGMA synchronous = \(synchronous)")
    }

    private static func copy(
        _ connection: SQLiteConnection, _ schema: Int, _ options: SQLiteStore.Options
    ) throws(StateStoreError) {
        let path = copy(of: connection.path, schema: schema)
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
        try StoreFile.create(path)
        do {
            let target = try SQLiteConnection(
                creating: path, busyTimeout: options.busyTimeout, wayToDisk: options.wayToDisk)
            try target.execute("PRAGMA synchronous = FULL")
            guard let backup = sqlite3_backup_init(target.handle, "main", connection.handle, "main") else {
                throw target.error
            }
            sqlite3_backup_step(backup, -1)
            guard sqlite3_backup_finish(backup) == SQLITE_OK else { throw target.error }
        }
        try StoreSchema.syncFolder(of: path)
    }
}
