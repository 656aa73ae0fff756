internal import CSQLite
internal import Glibc
internal import Trebuchet

/// What the file of a store looks like.
enum StoreSchema {
    /// Raised when the tables change; a file of a higher one is refused.
    static let version = 1
    /// Marks our files among SQLite's: `TREB`.
    static let applicationID = 0x5452_4542

    private static let tables = """
        CREATE TABLE schema (version INTEGER NOT NULL);
        INSERT INTO schema VALUES (\(version));
        CREATE TABLE entries (
            namespace TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL,
            PRIMARY KEY (namespace, name)) WITHOUT ROWID;
        PRAGMA application_id = \(applicationID);
        """

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

    /// Refuses a database that is not ours, is newer than we are, or is damaged anywhere.
    static func check(_ connection: SQLiteConnection) throws(StateStoreError) {
        let path = connection.path
        guard try connection.integer("PRAGMA application_id") == applicationID else {
            throw StateStoreError(.notAStore, "\(path) is the database of another program; name another file")
        }
        let found = try version(connection)
        guard found <= version else {
            throw StateStoreError(
                .newerSchema, "\(path) has schema \(found), and this program knows up to \(version): use a newer one")
        }
        if let problem = try connection.text("PRAGMA quick_check(1)"), problem != "ok" {
            throw StateStoreError.damaged(path, problem.split(separator: "\n").last.map(String.init) ?? problem)
        }
        try checkEntries(connection)
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

    /// SQLite sees damage to its own structure; the checksums show it in what we have written.
    private static func checkEntries(_ connection: SQLiteConnection) throws(StateStoreError) {
        let statement = try SQLiteStatement("SELECT namespace, name, value, checksum FROM entries", connection)
        while try statement.step() {
            let (namespace, name) = (statement.bytes(0), statement.bytes(1))
            try verify(
                Checksum.of(namespace, name, statement.bytes(2)), statement.integer(3), connection.path,
                StateKey(String(decoding: namespace, as: UTF8.self), String(decoding: name, as: UTF8.self)))
        }
    }

    static func verify(_ computed: Int, _ stored: Int, _ path: String, _ key: StateKey) throws(StateStoreError) {
        guard computed == stored else { throw StateStoreError.damaged(path, "the checksum of '\(key)' is wrong") }
    }
}
