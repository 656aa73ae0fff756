internal import CSQLite
internal import Trebuchet

/// A prepared statement. Columns and parameters count from 0.
final class SQLiteStatement {
    private let connection: SQLiteConnection
    private let handle: OpaquePointer

    init(_ sql: String, _ connection: SQLiteConnection) throws(StateStoreError) {
        var prepared: OpaquePointer?
        guard
            sqlite3_prepare_v3(connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
                == SQLITE_OK,
            let prepared
        else { throw connection.error }
        self.connection = connection
        handle = prepared
    }

    deinit { sqlite3_finalize(handle) }

    /// Runs the statement to its end. Text and blobs are not copied.
    func run(_ texts: [String] = [], blob: [UInt8]? = nil, integer: Int64? = nil) throws(StateStoreError) {
        defer { reset() }
        for (index, text) in texts.enumerated() { try bind(text, at: index) }
        if let integer { try check(sqlite3_bind_int64(handle, Int32(texts.count + 2), integer)) }
        guard let blob else {
            _ = try step()
            return
        }
        try blob.withBytes { bytes throws(StateStoreError) in
            try bind(bytes, at: texts.count)
            _ = try step()
        }
    }

    func bind(_ text: String, at index: Int) throws(StateStoreError) {
        // SQLite copies the text, which is short, up to its count: it may contain zeros.
        try check(
            sqlite3_bind_text64(
                handle, Int32(index + 1), text, UInt64(text.utf8.count), Self.copied, UInt8(SQLITE_UTF8)))
    }

    func bind(_ number: UInt64, at index: Int) throws(StateStoreError) {
        try check(sqlite3_bind_int64(handle, Int32(index + 1), Int64(bitPattern: number)))
    }

    /// Binds the first two parameters.
    func bind(_ key: StateKey) throws(StateStoreError) {
        try bind(key.namespace, at: 0)
        try bind(key.name, at: 1)
    }

    /// Runs the statement to its end with the bound parameters and these bytes, which are not copied.
    func run(blob: UnsafeRawBufferPointer, at index: Int) throws(StateStoreError) {
        defer { reset() }
        try bind(blob, at: index)
        _ = try step()
    }

    private func bind(_ bytes: UnsafeRawBufferPointer, at index: Int) throws(StateStoreError) {
        // Without a destructor SQLite does not copy: the bytes stay while the statement runs.
        try check(
            bytes.isEmpty
                ? sqlite3_bind_zeroblob(handle, Int32(index + 1), 0)
                : sqlite3_bind_blob64(handle, Int32(index + 1), bytes.baseAddress, UInt64(bytes.count), nil))
    }

    /// Advances to the next row. Returns false if there is none.
    func step() throws(StateStoreError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw connection.error
        }
    }

    func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    func integer(_ column: Int32) -> Int { Int(sqlite3_column_int64(handle, column)) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func number(_ column: Int32) -> UInt64 { UInt64(bitPattern: sqlite3_column_int64(handle, column)) }

    func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

    /// Returns the bytes of a column, valid until the next step.
    func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let base = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }

    private func check(_ result: Int32) throws(StateStoreError) {
        guard result == SQLITE_OK else { throw connection.error }
    }

    // SQLite's value for "make a copy" (SQLITE_TRANSIENT): -1 as a function that is never called.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}

extension [UInt8] {
    /// Works like `withUnsafeBytes`, with a typed error.
    func withBytes<Value>(
        _ body: (UnsafeRawBufferPointer) throws(StateStoreError) -> Value
    ) throws(StateStoreError) -> Value {
        try withUnsafeBytes { bytes in Result { () throws(StateStoreError) in try body(bytes) } }.get()
    }
}
