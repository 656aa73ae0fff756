internal import CSQLite
internal import Glibc
internal import Trebuchet

/// What the file of a store looks like.
enum StoreSchema {
    /// Raised when the tables change; a file of a higher one is refused.
    static let version = 3
    /// Marks our files among SQLite's: `TREB`.
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

    /// What schema 2 has beside the tables of schema 1, and schema 3.
    private static let logTables = """
        CREATE TABLE logs (
            namespace TEXT NOT NULL, name TEXT NOT NULL, epoch TEXT NOT NULL, number INTEGER NOT NULL,
            entries INTEGER NOT NULL, snapshot INTEGER NOT NULL, parts INTEGER NOT NULL, size INTEGER NOT NULL,
            checksum INTEGER NOT NULL, PRIMARY KEY (namespace, name)) WITHOUT ROWID;
        \(lives)
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

    /// What schema 3 has beside schema 2.
    private static let lives = """
        ALTER TABLE logs ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE logs ADD COLUMN lives BLOB NOT NULL DEFAULT x'';
        CREATE TABLE generations (number INTEGER PRIMARY KEY, epoch TEXT NOT NULL, checksum INTEGER NOT NULL);
        """

    /// Makes a file of an older schema one of this.
    static func changes(from schema: Int) -> String {
        "\(schema == 1 ? logTables : lives) UPDATE schema SET version = \(version);"
    }

    /// Makes a file under another name and moves it to its place, so that there is never half of one.
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
        guard rename(draft, path) == 0 else { throw StoreFile.failure("making \(path)", errno) }
        try syncFolder(of: path)
    }

    /// The name of a new file is safe only when its folder is.
    static func syncFolder(of path: String) throws(StateStoreError) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreFile.failure("opening \(folder)", errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFile.failure("writing \(folder)", errno) }
    }

    /// Refuses a database that is not ours, or is newer than we are.
    ///
    /// - Returns: its schema.
    static func recognize(_ connection: SQLiteConnection) throws(StateStoreError) -> Int {
        let path = connection.path
        guard try connection.integer("PRAGMA application_id") == applicationID else {
            throw StateStoreError(.notAStore, "\(path) is the database of another program; name another file")
        }
        let found = try version(connection)
        guard found >= 1 else { throw .damaged(path, "it has schema \(found)") }
        guard found <= version else {
            throw StateStoreError(
                .newerSchema, "\(path) has schema \(found), and this program knows up to \(version): use a newer one")
        }
        let tables = try connection.integer(
            "SELECT count(*) FROM sqlite_master WHERE name IN "
                + "('logs', 'log_drafts', 'log_entries', 'log_parts', 'generations')")
        guard tables == [0, 4, 5][found - 1] else {
            throw .damaged(path, "it does not have the tables of its schema \(found)")
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
        throw StateStoreError.damaged(connection.path, "it has no schema version")
    }

    static func verify(_ computed: Int, _ stored: Int, _ path: String, _ key: StateKey) throws(StateStoreError) {
        guard computed == stored else { throw StateStoreError.damaged(path, "the checksum of '\(key)' is wrong") }
    }
}
