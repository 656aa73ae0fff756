import CSQLite
import Glibc
import Synchronization
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetStore

@Suite(.timeLimit(.minutes(5))) struct SQLiteStoreTests {
    @Test("written values are there when the file is reopened", arguments: SQLiteStore.Durability.allCases)
    func reopening(durability: SQLiteStore.Durability) async throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.durability = durability
        for round in 0..<3 as Range<UInt8> {
            let store = try SQLiteStore(path: folder.file(), options: options)
            #expect(try await store.list("n").map(\.value) == (0..<round).map { [$0] })
            try await store.put([round], StateKey("n", "\(round)"))
            await store.close()
        }
        #expect(Set(folder.names) == ["data.db", "data.db-lock"], "closing merges the log into the file")
    }

    @Test("a file can be opened only once at a time, also through a link")
    func lock() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        symlink(folder.file(), folder.file("link.db"))
        for path in [folder.file(), folder.file("link.db")] {
            let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: path) }
            #expect(error?.code == .inUse)
            #expect(error?.message.contains("process \(getpid())") == true)
        }
        await store.close()
        await (try SQLiteStore(path: folder.file())).close()
    }

    @Test("a file is open once at a time, also through a hard link, and when its lock file was removed")
    func databaseLock() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        #expect(link(folder.file(), folder.file("other.db")) == 0)
        unlink(folder.file("data.db-lock"))
        for path in [folder.file(), folder.file("other.db")] {
            let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: path) }
            #expect(error?.code == .inUse)
            #expect(error?.message.contains("under another name or without its lock file") == true)
        }
        // SQLite's own locks have remained: another program that closes the database keeps its log.
        try await store.put([1], StateKey("n", "a"))
        let shell = try ChildProcess("/usr/bin/python3", ["-c", Self.visit, folder.file()], error: .merged)
        #expect(await shell.finish().output == "1\n")
        #expect(folder.names.contains("data.db-wal"))
        await store.close()
        // Its log has one of the names.
        let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: folder.file("other.db")) }
        #expect(error?.code == .unwritable && error?.message.contains("has 2 names (hard links)") == true)
        unlink(folder.file("other.db"))
        let next = try SQLiteStore(path: folder.file())
        #expect(try await next.get(StateKey("n", "a")) == [1])
        await next.close()
    }

    /// Reads the database as another program does.
    private static let visit = """
        import sqlite3, sys
        database = sqlite3.connect(sys.argv[1])
        print(database.execute("SELECT count(*) FROM entries").fetchone()[0])
        database.close()
        """

    @Test("another process cannot open a file through a hard link, or after its lock file was removed, and can later")
    func databaseLockOfProcess() async throws {
        let folder = try TemporaryFolder()
        let server = try await ServeProcess(arguments: ["--data", folder.file()])
        #expect(link(folder.file(), folder.file("other.db")) == 0)
        for path in [folder.file(), folder.file("other.db")] {
            unlink(folder.file("data.db-lock"))
            let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: path) }
            #expect(error?.code == .inUse && error?.message.contains("in use by another process") == true)
        }
        unlink(folder.file("other.db"))
        let waiting = Task { try await SQLiteStore.waitUntilAvailable(path: folder.file()) }
        await server.kill()
        await (try await waiting.value).close()
    }

    @Test("a closed store releases its file although a process that is being started still has a copy of the lock")
    func copiedLock() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        let name = folder.file("data.db-lock")
        let lock = try #require((0..<1024).first { Self.target(of: $0) == name })
        let copy = dup(lock)
        defer { close(copy) }
        await store.close()
        await (try SQLiteStore(path: folder.file())).close()
        let open = (0..<1024).filter { Self.target(of: $0)?.hasPrefix(folder.path) == true }
        #expect(open == [copy], "closed stores leave no descriptor open")
    }

    /// The target of a descriptor of this process.
    private static func target(of descriptor: Int32) -> String? {
        guard let path = realpath("/proc/self/fd/\(descriptor)", nil) else { return nil }
        defer { free(path) }
        return String(cString: path)
    }

    @Test("a store that waits for a file opens it when the holder closes it, and reports the reason for the wait once")
    func whenFree() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file()
        let first = try SQLiteStore(path: path)
        try await first.put([1], StateKey("n", "a"))
        let reported = Journal()
        let second = Task { try await SQLiteStore.waitUntilAvailable(path: path) { reported.record("\($0.code)") } }
        await reported.wait(for: "inUse")
        let third = Task { try await SQLiteStore.waitUntilAvailable(path: path) }
        third.cancel()
        await #expect(throws: CancellationError.self) { try await third.value }
        await first.close()
        let store = try await second.value
        #expect(try await store.list("n").map(\.value) == [[1]])
        #expect(reported.entries == ["inUse"])
        await store.close()
        await #expect(throws: StateStoreError.self) {
            try await SQLiteStore.waitUntilAvailable(path: "/nowhere/data.db")
        }
    }

    @Test("operations on a closed store fail with an error")
    func closed() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        await store.close()
        await store.close()
        await #expect(throws: StateStoreError(.closed, "\(folder.file()) was closed")) {
            try await store.put([], StateKey("n", "a"))
        }
        await #expect(throws: StateStoreError(.closed, "\(folder.file()) was closed")) {
            _ = try await store.get(StateKey("n", "a"))
        }
    }

    @Test("a full store refuses writes that do not fit, keeps its content and accepts writes that fit")
    func full() async throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.fileSize = 400 << 10
        let store = try SQLiteStore(path: folder.file(), options: options)
        try await store.put([1], StateKey("n", "small"))
        // Concurrent, so that they share one transaction: only the large one fails.
        let codes = await withTaskGroup(of: StateStoreError.Code?.self) { group in
            for index in 0..<10 {
                group.addTask {
                    let value = [UInt8](repeating: 1, count: index == 5 ? 1 << 20 : 100)
                    do throws(StateStoreError) {
                        try await store.write([
                            .put(value, StateKey("n", "\(index)")), .put([2], StateKey("m", "\(index)")),
                        ])
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.compactMap(\.self) == [.full])
        #expect(try await store.list("n").count == 10)
        #expect(try await store.get(StateKey("m", "5")) == nil, "a batch is written completely or not at all")
        try await store.put([3], StateKey("n", "after"))
        await store.close()
        let again = try SQLiteStore(path: folder.file())
        #expect(try await again.list("n").count == 11)
        await again.close()
    }

    @Test("a value over the limit is refused before any write")
    func tooLarge() async throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.valueSize = 1_000
        let store = try SQLiteStore(path: folder.file(), options: options)
        let error = await #expect(throws: StateStoreError.self) {
            try await store.write([
                .put([1], StateKey("n", "a")), .put(Array(repeating: 0, count: 1_001), StateKey("n", "b")),
            ])
        }
        #expect(error?.code == .tooLarge)
        #expect(try await store.list("n").isEmpty)
        await store.close()
    }

    @Test("a file held by another program is awaited, then the error names the program")
    func busy() async throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.busyTimeout = .milliseconds(10)
        let store = try SQLiteStore(path: folder.file(), options: options)
        var handle: OpaquePointer?
        try #require(sqlite3_open(folder.file(), &handle) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        try #require(sqlite3_exec(handle, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK)
        let error = await #expect(throws: StateStoreError.self) { try await store.put([1], StateKey("n", "a")) }
        #expect(error?.code == .inUse)
        #expect(try await store.get(StateKey("n", "a")) == nil, "reads still succeed")
        sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
        try await store.put([1], StateKey("n", "a"))
        #expect(try await store.get(StateKey("n", "a")) == [1])
        await store.close()
    }

    @Test("waiting writes become one transaction, in order")
    func groupCommit() throws {
        let folder = try TemporaryFolder()
        let file = try StoreFile(folder.file())
        let writer = try SQLiteWriter(file, SQLiteStore.Options())
        let answers = Mutex<[Int]>([])
        let key = StateKey("n", "a")
        let before = FileBytes.read(folder.file("data.db-wal")).count
        let requests = (0..<100).map { index in
            WriteRequest(writes: [.put([UInt8(index)], key)]) { outcome in
                if case .success = outcome { answers.withLock { $0.append(index) } }
            }
        }
        #expect(!writer.handle(requests))
        #expect(answers.withLock { $0 } == Array(0..<100))
        // One transaction writes each changed page to the log once.
        #expect(FileBytes.read(folder.file("data.db-wal")).count - before < 3 * 4_200)
        let reader = try SQLiteReader(file, SQLiteStore.Options(), writer.generations)
        #expect(try reader.get([key]) == [key: [99]])
    }

    @Test(
        "when the file fails, all waiting writes receive the cause, and later ones the error that writes are disabled"
    )
    func failedGroup() throws {
        let folder = try TemporaryFolder()
        let file = try StoreFile(folder.file())
        let writer = try SQLiteWriter(file, SQLiteStore.Options())
        var handle: OpaquePointer?
        try #require(sqlite3_open(folder.file(), &handle) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        try #require(sqlite3_exec(handle, "DROP TABLE entries", nil, nil, nil) == SQLITE_OK)
        let answers = Mutex<[String]>([])
        let request = WriteRequest(writes: [.put([1], StateKey("n", "a"))]) { outcome in
            if case .failure(let error) = outcome { answers.withLock { $0.append("\(error.code) \(error.message)") } }
        }
        #expect(!writer.handle([request, request]))
        let reported = answers.withLock { $0 }
        try #require(reported.count == 2)
        #expect(
            reported[0] == reported[1] && reported[0].hasPrefix("failed")
                && !reported[0].contains("open the store again"))
        #expect(!writer.handle([request]))
        #expect(answers.withLock { $0 }.last?.contains("writes are disabled, open the store again") == true)
    }

    @Test("only a store that survives power loss waits for the disk", arguments: SQLiteStore.Durability.allCases)
    func durability(durability: SQLiteStore.Durability) throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.durability = durability
        let writer = try SQLiteWriter(try StoreFile(folder.file()), options)
        // FULL is 2, NORMAL is 1.
        #expect(try writer.connection.integer("PRAGMA synchronous") == (durability == .powerLoss ? 2 : 1))
    }

    @Test("a value may have exactly as many bytes as the limit, and no more")
    func valueSize() async throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.valueSize = 10
        let store = try SQLiteStore(path: folder.file(), options: options)
        let key = StateKey("n", "a")
        try await store.put([UInt8](repeating: 1, count: 10), key)
        let error = await #expect(throws: StateStoreError.self) {
            try await store.put([UInt8](repeating: 1, count: 11), key)
        }
        #expect(error?.code == .tooLarge)
        #expect(try await store.get(key)?.count == 10)
        await store.close()
    }
}
