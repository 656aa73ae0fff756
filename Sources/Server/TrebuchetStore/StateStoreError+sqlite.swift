internal import CSQLite
internal import Trebuchet

extension StateStoreError {
    /// Creates the error of the last failed call on a connection.
    init(sqlite handle: OpaquePointer, path: String) {
        self.init(
            sqlite: sqlite3_extended_errcode(handle), String(cString: sqlite3_errmsg(handle)), path: path)
    }

    /// Creates the error of a result code, which may be an extended one.
    init(sqlite result: Int32, _ text: String, path: String) {
        switch result & 0xFF {
        case SQLITE_CORRUPT: self = .damaged(path, text)
        case SQLITE_NOTADB:
            self.init(.notAStore, "\(path) is not a SQLite database, or its first page is damaged (\(text))")
        case SQLITE_BUSY, SQLITE_LOCKED:
            self.init(.inUse, "\(path) is being written by another program (\(text))")
        case SQLITE_FULL:
            self.init(.full, "\(path) cannot grow: the disk is full, or the store has reached its size limit (\(text))")
        case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM:
            self.init(.unwritable, "\(path) or its folder cannot be written (\(text))")
        case SQLITE_TOOBIG: self.init(.tooLarge, "a value is too large for \(path) (\(text))")
        default: self.init(.failed, "\(path): \(text) (SQLite error \(result))")
        }
    }

    static func damaged(_ path: String, _ what: String) -> StateStoreError {
        StateStoreError(
            .damaged,
            "\(path) is damaged (\(what)); restore a backup, or save the readable rows as SQL: sqlite3 \(path) .dump")
    }

    /// The damage that the message of `damaged` describes; the whole message of other errors.
    func damage(of path: String) -> String {
        let start = "\(path) is damaged ("
        guard message.hasPrefix(start), let end = message.firstRange(of: "); restore a backup")?.lowerBound else {
            return message
        }
        return String(message[..<end].dropFirst(start.count))
    }

    /// True if the store must not continue after it, because the content of the disk is unknown.
    var isFinal: Bool { [.damaged, .notAStore, .failed].contains(code) }

    /// The error of writes after this one, which is final.
    var disablingWrites: StateStoreError {
        StateStoreError(code, "\(message); writes are disabled, open the store again")
    }

    /// True if the writes of one request may have caused it, so that those of others may succeed without them.
    var mayBeOfOneWrite: Bool { [.tooLarge, .full].contains(code) }
}
