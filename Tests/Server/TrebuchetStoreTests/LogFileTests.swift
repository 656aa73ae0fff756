import CSQLite
import Glibc
import Synchronization
import Testing
import Trebuchet

@testable import TrebuchetStore

/// Logs in the file: older schemas, damage and deletion.
@Suite(.timeLimit(.minutes(5))) struct LogFileTests {
    private let key = StateKey("n", "a")

    private func change(_ path: String, _ sql: String) throws {
        var handle: OpaquePointer?
        try #require(sqlite3_open(path, &handle) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        try #require(
            sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle)))")
    }

    private func count(_ path: String, _ table: String) throws -> Int {
        var (handle, statement): (OpaquePointer?, OpaquePointer?) = (nil, nil)
        try #require(sqlite3_open(path, &handle) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        try #require(sqlite3_prepare_v2(handle, "SELECT count(*) FROM \(table)", -1, &statement, nil) == SQLITE_OK)
        defer { sqlite3_finalize(statement) }
        try #require(sqlite3_step(statement) == SQLITE_ROW)
        return Int(sqlite3_column_int64(statement, 0))
    }

    private let toSchema1 = """
        DROP TABLE generations; DROP TABLE logs; DROP TABLE log_drafts; DROP TABLE log_entries; DROP TABLE log_parts;
        UPDATE schema SET version = 1
        """

    private func fill(_ path: String) async throws {
        let store = try SQLiteStore(path: path)
        try await store.write([
            .put([1], key),
            .snapshot(LogSnapshot(epoch: "e", version: 1, bytes: [UInt8](repeating: 1, count: 600_000)), key),
            StateWrite(key, .snapshotPart([5], index: 1, number: 9)),
        ])
        try await store.write(
            (1..<5).map { .append(LogEntry(version: $0 + 1, baseVersion: $0, bytes: [UInt8($0)]), key) })
        await store.close()
    }

    @Test("a file of schema 1 is migrated in place, and a private copy of it remains")
    func takeover() async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        try change(folder.file(), toSchema1)
        // Simulates an interrupted attempt.
        FileBytes.write([1, 2, 3], folder.file("data.db.schema1"))
        chmod(folder.file("data.db.schema1"), 0o644)
        let store = try SQLiteStore(path: folder.file())
        #expect(try await store.get(key) == [1])
        #expect(try await store.readLog(key) == nil)
        try await store.write([.snapshot(LogSnapshot(epoch: "e", version: 1, bytes: [1]), key)])
        await store.close()
        #expect(Set(folder.names) == ["data.db", "data.db-lock", "data.db.schema1"])
        var status = stat()
        #expect(stat(folder.file("data.db.schema1"), &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try count(folder.file("data.db.schema1"), "schema WHERE version = 1") == 1)
        #expect(try count(folder.file("data.db.schema1"), "entries") == 1)
        #expect(try count(folder.file(), "schema WHERE version = 3") == 1)
        let again = try SQLiteStore(path: folder.file())
        #expect(try await again.readLog(key)?.lastVersion == 1)
        await again.close()
    }

    @Test("a damaged file of schema 1 is refused before any change")
    func damagedTakeover() async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        try change(folder.file(), toSchema1 + "; UPDATE entries SET value = x'02'")
        let error = #expect(throws: StateStoreError.self) { try SQLiteStore(path: folder.file()) }
        #expect(error?.code == .damaged)
        #expect(!folder.names.contains("data.db.schema1"))
        #expect(try count(folder.file(), "schema WHERE version = 1") == 1)
    }

    @Test(
        "altered or missing data of a log is refused when the file is opened and when the log is read",
        arguments: [
            ("UPDATE log_entries SET bytes = x'07' WHERE number = 3", "change 3", true),
            ("UPDATE log_entries SET number = 30 WHERE number = 5", "change 30", true),
            ("DELETE FROM log_entries WHERE number = 3", "follows 3", true),
            ("DELETE FROM log_entries WHERE number = 2", "follows 2", true),
            ("UPDATE log_parts SET bytes = x'07' WHERE part = 2", "part 2", true),
            ("DELETE FROM log_parts WHERE part = 0", "part 0", true),
            ("DELETE FROM log_parts WHERE part = 2", "part 2", true),
            ("UPDATE logs SET number = 2", "checksum mismatch in the log", true),
            ("UPDATE logs SET epoch = 'f'", "checksum mismatch in the log", true),
            ("UPDATE logs SET lives = x'01'", "the incarnations of the log", true),
            ("UPDATE logs SET generation = 7", "checksum mismatch in the log", true),
            ("UPDATE generations SET epoch = 'f'", "checksum mismatch in generation", false),
            ("UPDATE logs SET name = 'b'", "checksum mismatch in the log", false),
            ("UPDATE log_drafts SET number = 8", "pending snapshot", false),
        ])
    func damage(sql: String, text: String, isRead: Bool) async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        let store = try SQLiteStore(path: folder.file())
        #expect(try await store.readLog(key)?.lastVersion == 5)
        try change(folder.file(), sql)
        if isRead {
            let read = await #expect(throws: StateStoreError.self) { _ = try await store.readLog(key) }
            #expect(read?.code == .damaged && read?.message.contains(text) == true, "\(read?.message ?? "")")
        }
        await store.close()
        let opened = #expect(throws: StateStoreError.self) { try SQLiteStore(path: folder.file()) }
        #expect(opened?.code == .damaged && opened?.message.contains(text) == true, "\(opened?.message ?? "")")
        #expect(opened?.message.contains(folder.file()) == true)
    }

    @Test(
        "data removed by a snapshot is deleted in slices, is never visible, and is also deleted after the store is reopened"
    )
    func garbage() async throws {
        let folder = try TemporaryFolder()
        do {
            let file = try StoreFile(folder.file())
            let writer = try SQLiteWriter(file, SQLiteStore.Options())
            let reader = try SQLiteReader(file, SQLiteStore.Options(), writer.generations)
            func write(_ writes: [StateWrite]) {
                let request = WriteRequest(writes: writes) { outcome in #expect((try? outcome.get()) != nil) }
                #expect(!writer.handle([request]))
            }
            write([.snapshot(LogSnapshot(epoch: "e", version: 0, bytes: [UInt8](repeating: 1, count: 1 << 20)), key)])
            write((0..<5_000).map { .append(LogEntry(version: $0 + 1, baseVersion: $0, bytes: [1]), key) })
            write([.snapshot(LogSnapshot(epoch: "e", version: 4_999, bytes: [2]), key)])
            let left = try count(folder.file(), "log_entries")
            #expect(left == 5_000, "the write does not wait for the deletion")
            #expect(try reader.logs.log(key)?.entries.map(\.version) == [5_000])
            // A later write deletes some as well.
            write([.append(LogEntry(version: 5_001, baseVersion: 5_000, bytes: [1]), key)])
            let later = try count(folder.file(), "log_entries")
            #expect((4_800..<5_000).contains(later), "\(later)")
            #expect(writer.sweep())
            let swept = try count(folder.file(), "log_entries")
            #expect((1...LogGarbageCollector.slice).contains(later - swept))
        }
        // Data that waits for deletion is found again.
        let file = try StoreFile(folder.file())
        let writer = try SQLiteWriter(file, SQLiteStore.Options())
        var (before, slices) = (try count(folder.file(), "log_entries"), 0)
        while writer.sweep() {
            let now = try count(folder.file(), "log_entries")
            #expect(before - now <= LogGarbageCollector.slice)
            (before, slices) = (now, slices + 1)
        }
        #expect(slices >= 3)
        #expect(try count(folder.file(), "log_entries") == 2)
        #expect(try count(folder.file(), "log_parts") == 1)
        #expect(!writer.sweep())
    }

    @Test("an idle store deletes removed data")
    func idle() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        try await store.write([.snapshot(LogSnapshot(epoch: "e", version: 0, bytes: [1]), key)])
        try await store.write((0..<3_000).map { .append(LogEntry(version: $0 + 1, baseVersion: $0, bytes: [1]), key) })
        try await store.write([StateWrite(key, .deleteLog)])
        var left = try count(folder.file(), "log_entries")
        while left > 0 {
            await Task.yield()
            left = try count(folder.file(), "log_entries")
        }
        await store.close()
    }

    @Test("opening reports its progress")
    func progress() async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        let reported = Mutex<[StoreProgress]>([])
        var options = SQLiteStore.Options()
        options.onProgress = { progress in reported.withLock { $0.append(progress) } }
        options.progressInterval = .zero
        await (try SQLiteStore(path: folder.file(), options: options)).close()
        let all = reported.withLock { $0 }
        #expect(all.count >= 3 && all.allSatisfy { $0.verifiedBytes <= $0.totalBytes && $0.totalBytes > 600_000 })
        #expect(all.map(\.verifiedBytes) == all.map(\.verifiedBytes).sorted())
        #expect((all.last?.verifiedBytes ?? 0) > 500_000 && (50...100).contains(all.last?.percent ?? 0))
        reported.withLock { $0 = [] }
        options.progressInterval = .seconds(1)
        await (try SQLiteStore(path: folder.file(), options: options)).close()
        #expect(reported.withLock { $0 } == [], "a quick check has no progress reports")
    }
}
