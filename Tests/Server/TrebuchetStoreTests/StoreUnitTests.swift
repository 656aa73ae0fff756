import CSQLite
import Glibc
import Synchronization
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetStore

/// The parts of a store in isolation.
@Suite(.timeLimit(.minutes(5))) struct StoreUnitTests {
    @Test(
        "a checksum is the CRC-32 of namespace, name and value in sequence",
        arguments: [
            ("", "", "123456789", 0xCBF4_3926), ("12", "345", "6789", 0xCBF4_3926), ("123456789", "", "", 0xCBF4_3926),
            ("", "", "", 0), ("", "a", "", 0xE8B7_BE43),
        ])
    func checksum(namespace: String, name: String, value: String, sum: Int) {
        #expect(Checksum.of(namespace, name, Array(value.utf8)) == sum)
    }

    @Test(
        "a folder that cannot be opened or secured is an error that names the folder and the failed operation",
        arguments: [("/nowhere/at/all/data.db", "opening /nowhere/at/all/"), ("/proc/data.db", "writing /proc/")])
    func folder(path: String, text: String) {
        let error = #expect(throws: StateStoreError.self) { try StoreSchema.syncFolder(of: path) }
        #expect(error?.message.contains(text) == true)
    }

    @Test(
        "SQLite errors, extended or not, have the code of their kind and name the file",
        arguments: [
            (SQLITE_CORRUPT, .damaged, "is damaged"), (SQLITE_CORRUPT | 1 << 8, .damaged, "is damaged"),
            (SQLITE_NOTADB, .notAStore, "is not a SQLite database"), (SQLITE_BUSY, .inUse, "by another program"),
            (SQLITE_LOCKED, .inUse, "by another program"), (SQLITE_FULL, .full, "cannot grow"),
            (SQLITE_READONLY, .unwritable, "cannot be written"), (SQLITE_CANTOPEN, .unwritable, "cannot be written"),
            (SQLITE_PERM, .unwritable, "cannot be written"),
            (SQLITE_READONLY | 4 << 8, .unwritable, "cannot be written"),
            (SQLITE_TOOBIG, .tooLarge, "too large"), (SQLITE_IOERR, .failed, "SQLite error 10"),
            (SQLITE_IOERR | 3 << 8, .failed, "SQLite error 778"), (SQLITE_ERROR, .failed, "SQLite error 1"),
        ] as [(Int32, StateStoreError.Code, String)])
    func errors(result: Int32, code: StateStoreError.Code, text: String) {
        let error = StateStoreError(sqlite: result, "what it says", path: "/x/data.db")
        #expect(error.code == code)
        #expect(error.message.contains("/x/data.db") && error.message.contains("what it says"))
        #expect(error.message.contains(text))
        #expect(error.isFinal == [.damaged, .notAStore, .failed].contains(code))
        #expect(error.mayBeOfOneWrite == [.tooLarge, .full].contains(code))
    }

    @Test(
        "system errors have the code of their kind and name the failed operation",
        arguments: [
            (EACCES, .unwritable), (EPERM, .unwritable), (EROFS, .unwritable), (ENOENT, .unwritable),
            (ENOTDIR, .unwritable),
            (EISDIR, .unwritable), (ENAMETOOLONG, .unwritable), (ELOOP, .unwritable), (ENOSPC, .full), (EDQUOT, .full),
            (EIO, .failed),
        ] as [(Int32, StateStoreError.Code)])
    func failures(number: Int32, code: StateStoreError.Code) {
        let error = StoreFile.failure("making x", number)
        #expect(error.code == code)
        #expect(error.message == "making x: \(String(cString: strerror(number)))")
    }

    // MARK: Connections and statements

    @Test(
        "a database waits for locks as long as configured, in milliseconds",
        arguments: [
            (Duration.milliseconds(2_500), 2_500), (.seconds(5), 5_000), (.microseconds(1_900), 1), (.zero, 0),
        ])
    func busyTimeout(time: Duration, milliseconds: Int) throws {
        let folder = try TemporaryFolder()
        try StoreFile.create(folder.file())
        let connection = try SQLiteConnection(creating: folder.file(), busyTimeout: time)
        #expect(try connection.integer("PRAGMA busy_timeout") == milliseconds)
        #expect(try connection.text("PRAGMA journal_mode") == "delete")
        #expect(try connection.integer("SELECT 1 WHERE 0") == nil)
        #expect(try connection.text("SELECT 'x' WHERE 0") == nil)
    }

    @Test("a database that cannot be opened is an error, and creates no file")
    func noDatabase() throws {
        let folder = try TemporaryFolder()
        func code(_ path: String) -> StateStoreError.Code? {
            do throws(StateStoreError) {
                _ = try SQLiteConnection(creating: path, busyTimeout: .zero)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code(folder.file("none.db")) == .unwritable)
        #expect(code(folder.path) == .unwritable)
        #expect(folder.names == [])
    }

    @Test("a statement may run again, with other values or none, and an invalid one is an error")
    func statements() throws {
        let folder = try TemporaryFolder()
        try StoreFile.create(folder.file())
        let connection = try SQLiteConnection(creating: folder.file(), busyTimeout: .zero)
        try connection.execute("CREATE TABLE t (a TEXT UNIQUE, b BLOB, c INTEGER)")
        let insert = try SQLiteStatement("INSERT INTO t VALUES (?, ?, ?)", connection)
        try insert.run(["x"], blob: [1, 2], integer: 7)
        try insert.run(["y"], blob: [], integer: -1)
        // The earlier bindings are cleared.
        try insert.run(["z"])
        #expect(throws: StateStoreError.self) { try insert.run(["x"], blob: [9], integer: 9) }
        try insert.run(["w"], blob: [3], integer: 0)
        #expect(
            try connection.text(
                "SELECT group_concat(a || ':' || coalesce(hex(b), '-') || ':' || coalesce(c, '-') || ':' || typeof(b), ' ') FROM t"
            )
                == "x:0102:7:blob y::-1:blob z::-:null w:03:0:blob")
        let rows = try SQLiteStatement("SELECT a, c FROM t WHERE a >= ? ORDER BY a", connection)
        try rows.bind("y", at: 0)
        #expect(try rows.step() && String(decoding: rows.bytes(0), as: UTF8.self) == "y" && rows.integer(1) == -1)
        #expect(try rows.step() && rows.bytes(1).isEmpty)
        #expect(try !rows.step())
        rows.reset()
        // With nothing bound, no row is found.
        #expect(try !rows.step())
        #expect(throws: StateStoreError.self) { try rows.bind("y", at: 1) }
        for sql in ["SELECT nothing", "NOT SQL", ""] {
            #expect(throws: StateStoreError.self) { try SQLiteStatement(sql, connection) }
        }
        #expect(throws: StateStoreError.self) { try connection.execute("NOT SQL") }
    }

    // MARK: Groups

    /// Returns true if one transaction has both requests: the first response checks for the second write.
    private func areTogether(_ first: [StateWrite], isSecondLarge: Bool = false) throws -> Bool {
        let folder = try TemporaryFolder()
        let file = try StoreFile(folder.file())
        let writer = try SQLiteWriter(file, SQLiteStore.Options())
        // The writer calls `look` on this thread.
        nonisolated(unsafe) let reader = try SQLiteReader(file, SQLiteStore.Options(), writer.generations)
        let second = StateKey("second", "")
        let found = Mutex<[Bool]>([])
        let look: @Sendable (Result<Void, StateStoreError>) -> Void = { _ in
            found.withLock { $0.append((try? reader.get([second]))?.isEmpty == false) }
        }
        let large = [UInt8](repeating: 1, count: isSecondLarge ? 100_000 : 1)
        var requests = [
            WriteRequest(writes: first, answer: look), WriteRequest(writes: [.put(large, second)], answer: look),
        ]
        while writer.handle(requests) { requests = [] }
        let seen = found.withLock { $0 }
        #expect(seen.count == 2 && seen.last == true)
        return seen.first == true
    }

    @Test(
        "waiting writes share a transaction while they are fewer than 10,000",
        arguments: [(9_999, true), (10_000, false)])
    func groupWrites(count: Int, together: Bool) throws {
        let areTogether = try areTogether((0..<count).map { .put([], StateKey("n", "\($0 % 10)")) })
        #expect(areTogether == together)
    }

    @Test(
        "large waiting writes share a transaction while they are smaller than 512 KiB",
        arguments: [(512 << 10, false), ((512 << 10) - 1, true)])
    func groupBytes(count: Int, together: Bool) throws {
        let areTogether = try areTogether(
            [
                .delete(StateKey("n", "b")), .put([UInt8](repeating: 1, count: count), StateKey("n", "a")),
            ], isSecondLarge: true)
        #expect(areTogether == together)
    }

    @Test("small writes go before large ones that wait, and those of one key keep their order")
    func largeWritesLast() throws {
        let folder = try TemporaryFolder()
        let writer = try SQLiteWriter(try StoreFile(folder.file()), SQLiteStore.Options())
        let answers = Mutex<[String]>([])
        func request(_ name: String, _ key: String, bytes: Int) -> WriteRequest {
            WriteRequest(writes: [.put([UInt8](repeating: 1, count: bytes), StateKey("n", key))]) { _ in
                answers.withLock { $0.append(name) }
            }
        }
        let large = 2 << 20
        var hasMore = writer.handle([
            request("large 1", "a", bytes: large), request("large 2", "b", bytes: large),
            request("small 1", "c", bytes: 1), request("small 2", "b", bytes: 1),
        ])
        #expect(hasMore && answers.withLock { $0 } == ["small 1", "large 1"])
        hasMore = writer.handle([request("small 3", "a", bytes: 1), request("small 4", "b", bytes: 1)])
        #expect(hasMore && answers.withLock { $0.suffix(2) } == ["small 3", "large 2"])
        #expect(!writer.handle([request("small 5", "c", bytes: 1)]))
        #expect(answers.withLock { $0.suffix(3) } == ["small 5", "small 2", "small 4"])
    }

    // MARK: Files

    @Test("an invalid file path is refused", arguments: ["", "a\u{0}b", "/nowhere/at/all/data.db"])
    func noPath(path: String) {
        let error = #expect(throws: StateStoreError.self) { try StoreFile(path) }
        #expect(error?.code == .unwritable)
    }

    @Test("a new file is private and empty, and is not created twice")
    func created() throws {
        let folder = try TemporaryFolder()
        try StoreFile.create(folder.file())
        var status = stat()
        #expect(stat(folder.file(), &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600 && status.st_size == 0)
        let error = #expect(throws: StateStoreError.self) { try StoreFile.create(folder.file()) }
        #expect(error?.message.hasPrefix("creating \(folder.file()): ") == true)
    }

    @Test("the lock file contains the process ID of the store's owner, whatever it held before, and is never a link")
    func lockFile() throws {
        let folder = try TemporaryFolder()
        FileBytes.write(Array("a longer text than any number".utf8), folder.file("data.db-lock"))
        chmod(folder.file("data.db-lock"), 0o600)
        do {
            let file = try StoreFile(folder.file())
            #expect(file.isNew && file.path == folder.file())
            #expect(FileBytes.read(folder.file("data.db-lock")) == Array("\(getpid())".utf8))
        }
        unlink(folder.file("data.db-lock"))
        symlink(folder.file("elsewhere"), folder.file("data.db-lock"))
        let error = #expect(throws: StateStoreError.self) { try StoreFile(folder.file()) }
        #expect(error?.code == .unwritable)
        #expect(error?.message.contains("data.db-lock") == true)
        #expect(!folder.names.contains("elsewhere"))
    }

    @Test("a draft left by an earlier attempt is replaced")
    func leftDraft() async throws {
        let folder = try TemporaryFolder()
        for name in ["data.db-new", "data.db-new-journal"] { FileBytes.write([1, 2, 3], folder.file(name)) }
        let store = try SQLiteStore(path: folder.file())
        await store.close()
        #expect(Set(folder.names) == ["data.db", "data.db-lock"])
    }

    @Test("a path of a folder or a device is refused", arguments: ["folder", "device"])
    func noFile(kind: String) throws {
        let folder = try TemporaryFolder()
        let error = #expect(throws: StateStoreError.self) {
            try StoreFile(kind == "folder" ? folder.path : "/dev/null")
        }
        #expect(error?.code == .notAStore)
        #expect(error?.message.contains("is a folder or a device") == true)
    }

    @Test("each log without its database file is named", arguments: ["-wal", "-journal"])
    func leftLog(suffix: String) throws {
        let folder = try TemporaryFolder()
        FileBytes.write([1], folder.file("data.db" + suffix))
        chmod(folder.file("data.db" + suffix), 0o600)
        let error = #expect(throws: StateStoreError.self) { try StoreFile(folder.file()) }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("data.db\(suffix) exists") == true)
    }

    @Test(
        "no file of a store may be accessible to others, in any way",
        arguments: ["", "-wal", "-shm", "-journal", "-lock"])
    func exposed(suffix: String) async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        await store.close()
        let name = folder.file("data.db" + suffix)
        if suffix != "", suffix != "-lock" { FileBytes.write([], name) }
        for mode in [0o601, 0o602, 0o604, 0o610, 0o620, 0o640] as [mode_t] {
            chmod(name, mode)
            let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: folder.file()) }
            #expect(error?.code == .insecurePermissions)
            #expect(error?.message.contains("chmod 600 '\(name)'") == true)
        }
        chmod(name, 0o600)
        if suffix != "-journal" { await (try SQLiteStore(path: folder.file())).close() }
    }

    // MARK: Threads

    @Test("a worker handles items in order, takes all waiting items at once, and none after it was stopped")
    func worker() async {
        let (began, gate) = (Journal(), Journal())
        let done = Mutex<[[Int]]>([])
        let worker = WorkerThread<Void, Int>("a-worker", ()) { _, numbers in
            if numbers == [0] {
                began.record("began")
                // The worker has a dedicated thread: it may block.
                while gate.entries.isEmpty { sched_yield() }
            }
            done.withLock { $0.append(numbers) }
            return numbers == [1, 2, 3]
        }
        #expect(worker.submit(0))
        await began.wait(for: "began")
        for number in 1...3 { #expect(worker.submit(number)) }
        let ended = Journal()
        worker.stop { ended.record("first") }
        worker.stop { ended.record("second") }
        #expect(!worker.submit(4))
        #expect(ended.entries == [])
        gate.record("go on")
        await ended.wait(for: "second")
        // It is called again for requests that it has kept.
        #expect(done.withLock { $0 } == [[0], [1, 2, 3], []])
        #expect(ended.entries == ["first", "second"])
        // A later call completes immediately.
        worker.stop { ended.record("third") }
        #expect(ended.entries == ["first", "second", "third"])
        #expect(!worker.submit(5))
    }

    @Test("a worker's state and its handler's objects are released before the end is reported; an idle worker ends too")
    func released() async {
        final class Retained: Sendable {}
        /// `@unchecked Sendable`: written before the worker starts.
        final class Reference: @unchecked Sendable {
            weak var retainedByHandler: Retained?
            weak var state: Retained?
        }
        let reference = Reference()
        let name = Mutex("")
        var worker: WorkerThread<Retained, Int>?
        do {
            let (retained, state) = (Retained(), Retained())
            (reference.retainedByHandler, reference.state) = (retained, state)
            worker = WorkerThread("b-worker", state) { _, _ in
                name.withLock { $0 = String(decoding: FileBytes.read("/proc/thread-self/comm"), as: UTF8.self) }
                _ = retained
                return false
            }
        }
        #expect(reference.retainedByHandler != nil && reference.state != nil)
        #expect(worker?.submit(1) == true)
        let isGone = await withCheckedContinuation { continuation in
            worker?.stop {
                continuation.resume(returning: reference.retainedByHandler == nil && reference.state == nil)
            }
        }
        #expect(isGone)
        #expect(name.withLock { $0 } == "b-worker\n")
        worker = nil
    }
}
