internal import CSQLite
internal import Glibc
internal import Trebuchet

/// A connection to a database, for one thread at a time.
final class SQLiteConnection {
    let path: String
    let handle: OpaquePointer
    /// Retained until the connection is closed.
    private let file: StoreFile?

    /// Opens the database of an existing file.
    convenience init(
        _ file: StoreFile, busyTimeout: Duration, wayToDisk: String? = nil
    ) throws(StateStoreError) {
        try self.init(file.path, file, SQLITE_OPEN_READWRITE, busyTimeout, wayToDisk)
    }

    /// Creates a database in an empty file.
    convenience init(
        creating path: String, busyTimeout: Duration, wayToDisk: String? = nil
    ) throws(StateStoreError) {
        try self.init(path, nil, SQLITE_OPEN_READWRITE, busyTimeout, wayToDisk)
    }

    /// Opens the database of a file that another process may use, for reading only.
    ///
    /// A read-only connection would leave the side files behind that it makes for a database without a log. A connection that
    /// may write removes them, but would also merge a log that an ended process has left.
    convenience init(reading path: String, busyTimeout: Duration) throws(StateStoreError) {
        var status = stat()
        let hasLog = stat(path + "-wal", &status) == 0 && status.st_size > 0
        try self.init(path, nil, hasLog ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, busyTimeout, nil)
        try execute("PRAGMA query_only = 1")
    }

    private init(
        _ path: String, _ file: StoreFile?, _ flags: Int32, _ busyTimeout: Duration, _ wayToDisk: String?
    ) throws(StateStoreError) {
        self.path = path
        self.file = file
        var opened: OpaquePointer?
        let result = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_NOMUTEX, wayToDisk)
        guard let opened else { throw StateStoreError(.failed, "\(path): SQLite is out of memory") }
        guard result == SQLITE_OK else {
            let error = StateStoreError(sqlite: opened, path: path)
            sqlite3_close_v2(opened)
            throw error
        }
        handle = opened
        sqlite3_extended_result_codes(handle, 1)
        let (seconds, attoseconds) = busyTimeout.components
        sqlite3_busy_timeout(handle, Int32(clamping: seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
    }

    /// Closes the connection. The last connection of a database merges its log into it.
    deinit { sqlite3_close_v2(handle) }

    func execute(_ sql: String) throws(StateStoreError) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw error }
    }

    /// Returns the first column of the first row.
    func integer(_ sql: String) throws(StateStoreError) -> Int? {
        let statement = try SQLiteStatement(sql, self)
        return try statement.step() ? statement.integer(0) : nil
    }

    func text(_ sql: String) throws(StateStoreError) -> String? {
        let statement = try SQLiteStatement(sql, self)
        return try statement.step() ? String(decoding: statement.bytes(0), as: UTF8.self) : nil
    }

    /// The number of rows changed by the last modifying statement.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// The error of the last failed call.
    var error: StateStoreError { StateStoreError(sqlite: handle, path: path) }
}
