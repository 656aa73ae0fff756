internal import CSQLite
internal import Glibc
internal import Trebuchet

/// The format of a store's file.
enum StoreSchema {
    /// The schema version, increased when the tables change. A file with a higher one is refused.
    static let version = 3
    /// The application id of store files in SQLite: `TREB`.
    static let applicationID = 0x5452_4542

    private static let tables = """
        CREATE TABLE schema (version INTEGER NOT NULL);
        INSERT INTO schema VALUES (\(version));
        CREATE TABLE entries (
            namespace TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL,
            PRIMARY KEY (namespace, name)) WITHOUT ROWID;
        \(logTables)
        PRAGMA application_id = \(applicationID);
        """

    /// The additions of schema 2 to the tables of schema 1, including those of schema 3.
    private static let logTables = """
        CREATE TABLE logs (
            namespace TEXT NOT NULL, name TEXT NOT NULL, epoch TEXT NOT NULL, number INTEGER NOT NULL,
            entries INTEGER NOT NULL, snapshot INTEGER NOT NULL, parts INTEGER NOT NULL, size INTEGER NOT NULL,
            checksum INTEGER NOT NULL, PRIMARY KEY (namespace, name)) WITHOUT ROWID;
        \(incarnations)
        CREATE TABLE log_drafts (
            namespace TEXT NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL, snapshot INTEGER NOT NULL,
            checksum INTEGER NOT NULL, PRIMARY KEY (namespace, name)) WITHOUT ROWID;
        CREATE TABLE log_entries (
            log INTEGER NOT NULL, number INTEGER NOT NULL, base INTEGER NOT NULL, checksum INTEGER NOT NULL,
            bytes BLOB NOT NULL, PRIMARY KEY (log, number)) WITHOUT ROWID;
        CREATE TABLE log_parts (
            snapshot INTEGER NOT NULL, part INTEGER NOT NULL, checksum INTEGER NOT NULL, bytes BLOB NOT NULL,
            PRIMARY KEY (snapshot, part)) WITHOUT ROWID;
        """

    /// The additions of schema 3 to schema 2.
    private static let incarnations = """
        ALTER TABLE logs ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE logs ADD COLUMN lives BLOB NOT NULL DEFAULT x'';
        CREATE TABLE generations (number INTEGER PRIMARY KEY, epoch TEXT NOT NULL, checksum INTEGER NOT NULL);
        """

    /// Returns the statements that migrate a file from an older schema.
    static func changes(from schema: Int) -> String {
        "\(schema == 1 ? logTables : incarnations) UPDATE schema SET version = \(version);"
    }

    /// Creates a file under another name and renames it, so that an incomplete file never has the final name.
    static func create(_ path: String, _ options: SQLiteStore.Options) throws(StateStoreError) {
        let draft = path + "-new"
        unlink(draft)
        unlink(draft + "-journal")
        try StoreFile.create(draft)
        do {
            let connection = try SQLiteConnection(
                creating: draft, busyTimeout: options.busyTimeout, wayToDisk: options.wayToDisk)
            try connection.execute("PRAGMA synchronous = FULL; BEGIN; \(tables) COMMIT;")
        } catch {
            unlink(draft)
            throw error
        }
        guard rename(draft, path) == 0 else { throw StoreFile.failure("creating \(path)", errno) }
        try syncFolder(of: path)
    }

    /// Syncs the folder, without which the name of a new file may be lost.
    static func syncFolder(of path: String) throws(StateStoreError) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreFile.failure("opening \(folder)", errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFile.failure("writing \(folder)", errno) }
    }

    /// Refuses the database of another program, or of a newer version.
    ///
    /// - Returns: its schema.
    static func recognize(_ connection: SQLiteConnection) throws(StateStoreError) -> Int {
        let path = connection.path
        guard try connection.integer("PRAGMA application_id") == applicationID else {
            throw StateStoreError(.notAStore, "\(path) is the database of another program; pass another file")
        }
        let found = try version(connection)
        guard found >= 1 else { throw .damaged(path, "invalid schema version \(found)") }
        guard found <= version else {
            throw StateStoreError(
                .newerSchema,
                "\(path) has schema version \(found), newer than the supported \(version); use a newer program")
        }
        let tables = try connection.integer(
            "SELECT count(*) FROM sqlite_master WHERE name IN "
                + "('logs', 'log_drafts', 'log_entries', 'log_parts', 'generations')")
        guard tables == [0, 4, 5][found - 1] else {
            throw .damaged(path, "tables of schema version \(found) are missing")
        }
        return found
    }

    private static func version(_ connection: SQLiteConnection) throws(StateStoreError) -> Int {
        do {
            if let found = try connection.integer("SELECT version FROM schema") { return found }
        } catch  where error.code != .failed {
            throw error
        } catch {
            // There is no such table.
        }
        throw StateStoreError.damaged(connection.path, "the schema version is missing")
    }

    static func verify(_ computed: Int, _ stored: Int, _ path: String, _ key: StateKey) throws(StateStoreError) {
        guard computed == stored else { throw StateStoreError.damaged(path, valueOf: key) }
    }
}
