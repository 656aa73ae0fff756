internal import CSQLite
internal import Glibc
internal import Platform
package import Trebuchet

/// Copies whole stores: backups of files that may be in use, and restored files.
///
/// A copy has its name only when it is complete, checked and synced. A file of that name is never replaced.
package enum StoreCopy {
    /// The part of the work that a report is about.
    package enum Step: String, Sendable { case copying, checking }

    /// Receives the step, its progress in percent, and the size of the file in bytes, on the thread that copies.
    package typealias Progress = @Sendable (_ step: Step, _ percent: Int, _ bytes: Int) -> Void

    /// The number of pages that are copied at once: 1 MiB.
    private static let pages: Int32 = 256

    /// Copies a store, also while a server uses it. The server can write meanwhile; the copy has the content of the store at its
    /// start. It uses at most about half of the time of the disk.
    ///
    /// - Parameters:
    ///   - path: not a file that this process has open.
    ///   - interval: the time between two reports.
    /// - Returns: the size of the copy in bytes.
    /// - Throws: `notAStore`, `newerSchema`, `damaged` for the store; `unwritable` if `target` exists; `full`.
    package static func backUp(
        _ path: String, to target: String, interval: Duration = .seconds(1), onProgress report: @escaping Progress
    ) throws(StateStoreError) -> Int {
        let draft = try checkedCopy(of: path, as: target, isPaced: true, interval, report)
        let size = draft.size
        try draft.publish()
        return size
    }

    /// Creates the file of a store from a backup, with a generation of its own: no client resumes from versions that the backup
    /// lacks. The file belongs to the owner of its folder if this process runs as root.
    ///
    /// - Returns: the size of the file in bytes.
    /// - Throws: `inUse` while a server uses the file; else as `backUp`.
    package static func restore(
        _ backup: String, to target: String, onProgress report: @escaping Progress
    ) throws(StateStoreError) -> Int {
        // Its lock keeps servers out until the file is complete.
        let file = try lockedMissingFile(target)
        defer { withExtendedLifetime(file) {} }
        let draft = try checkedCopy(of: backup, as: file.path, isPaced: false, .seconds(1), report)
        try startGeneration(of: draft)
        try draft.giveToOwnerOfFolder()
        let size = draft.size
        try draft.publish()
        return size
    }

    /// Removes the incomplete copies of this process, which is about to end.
    package static func removeIncomplete() { StoreDraft.removeAll() }

    /// Removes an incomplete copy that an ended process has left.
    ///
    /// - Parameter target: the name that the copy would have got.
    package static func removeIncomplete(of target: String) { StoreDraft.removeAbandoned(StoreDraft.path(of: target)) }

    private static func lockedMissingFile(_ target: String) throws(StateStoreError) -> StoreFile {
        func exists() -> StateStoreError {
            StateStoreError(
                .unwritable,
                "\(target) exists and is never overwritten; move it away together with \(target)-wal and \(target)-shm, or "
                    + "choose another name")
        }
        var status = stat()
        let isThere = lstat(target, &status) == 0
        for suffix in ["-wal", "-journal"] where !isThere && lstat(target + suffix, &status) == 0 {
            throw StateStoreError(
                .unwritable,
                "\(target + suffix) is left from another file and would change the restored one; move it away")
        }
        let file: StoreFile
        do throws(StateStoreError) {
            file = try StoreFile(target)
        } catch {
            guard isThere, error.code != .inUse else { throw error }
            throw exists()
        }
        guard file.isNew else { throw exists() }
        return file
    }

    /// Copies and checks a store. The copy is removed if it is not published.
    private static func checkedCopy(
        of path: String, as target: String, isPaced: Bool, _ interval: Duration, _ report: @escaping Progress
    ) throws(StateStoreError) -> StoreDraft {
        try StoreFile.checkIsDatabase(path)
        let source = try SQLiteConnection(reading: path, busyTimeout: busyTimeout)
        // One read transaction for all steps: other processes may write without starting the copy again.
        try source.execute("BEGIN")
        _ = try StoreSchema.recognize(source)
        let size = (try source.integer("PRAGMA page_count") ?? 0) * (try source.integer("PRAGMA page_size") ?? 4096)
        try checkSpace(for: size, at: target)
        let draft = try StoreDraft(of: target)
        try copy(source, to: draft, size, isPaced: isPaced, interval, report)
        try source.execute("COMMIT")
        do throws(StateStoreError) {
            try check(draft, report)
        } catch {
            // The copy will not exist: the file that has the problem is the original.
            throw StateStoreError(error.code, error.message.replacing(draft.path, with: path))
        }
        return draft
    }

    private static let busyTimeout = Duration.seconds(30)

    private static func checkSpace(for size: Int, at target: String) throws(StateStoreError) {
        let folder = target.lastIndex(of: "/").map { String(target[...$0]) } ?? "."
        var status = statvfs()
        // A folder that does not exist is reported later.
        guard statvfs(folder, &status) == 0 else { return }
        let free = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        guard !free.overflow, free.partialValue < UInt64(size) else { return }
        throw StateStoreError(
            .full, "\(target) needs \(size >> 10) KiB, but \(folder) has \(free.partialValue >> 10) KiB of free space")
    }

    private static func copy(
        _ source: SQLiteConnection, to draft: StoreDraft, _ size: Int, isPaced: Bool, _ interval: Duration,
        _ report: Progress
    ) throws(StateStoreError) {
        let target = try SQLiteConnection(creating: draft.path, busyTimeout: busyTimeout)
        try target.execute("PRAGMA synchronous = FULL")
        guard let backup = sqlite3_backup_init(target.handle, "main", source.handle, "main") else { throw target.error }
        var result = SQLITE_OK
        var failure: StateStoreError?
        var lastReport = MonotonicClock.now
        while result == SQLITE_OK {
            result = sqlite3_backup_step(backup, pages)
            if isPaced {
                do throws(StateStoreError) { try draft.syncAndPause() } catch {
                    failure = error
                    break
                }
            }
            guard MonotonicClock.now - lastReport >= interval.nanoseconds else { continue }
            lastReport = MonotonicClock.now
            let (all, rest) = (Int(sqlite3_backup_pagecount(backup)), Int(sqlite3_backup_remaining(backup)))
            report(.copying, all > 0 ? (all - rest) * 100 / all : 0, size)
        }
        sqlite3_backup_finish(backup)
        if let failure { throw failure }
        guard result == SQLITE_DONE else {
            let isOfSource = [SQLITE_CORRUPT, SQLITE_NOTADB].contains(result & 0xFF)
            throw StateStoreError(
                sqlite: result, String(cString: sqlite3_errstr(result)), path: isOfSource ? source.path : draft.path)
        }
        // The copy has no log: it is one file, which can be read in a folder that cannot be written.
        guard try target.text("PRAGMA journal_mode = DELETE") == "delete" else { throw target.error }
    }

    private static func check(_ draft: StoreDraft, _ report: @escaping Progress) throws(StateStoreError) {
        let connection = try SQLiteConnection(reading: draft.path, busyTimeout: busyTimeout)
        var options = SQLiteStore.Options()
        options.onProgress = { report(.checking, $0.percent, $0.totalBytes) }
        let schema = try StoreSchema.recognize(connection)
        try StoreIntegrityCheck.run(connection, schema: schema, options, isThorough: true)
        if schema == StoreSchema.version { _ = try StoreGenerations.check(connection) }
    }

    /// Begins a generation in a file of the current schema. The first opening of an older one migrates it, and begins one.
    private static func startGeneration(of draft: StoreDraft) throws(StateStoreError) {
        let connection = try SQLiteConnection(creating: draft.path, busyTimeout: busyTimeout)
        guard try StoreSchema.recognize(connection) == StoreSchema.version else { return }
        _ = try StoreGenerations.startGeneration(connection)
    }
}

extension StoreDraft {
    /// The size of the file in bytes.
    fileprivate var size: Int {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    }
}
