import CSQLite
import Glibc
import Platform
import Testing
import Trebuchet

@testable import TrebuchetStore

/// A damaged or altered file is refused with an error that names it; it is never treated as empty.
@Suite(.timeLimit(.minutes(5))) struct DamagedFileTests {
    /// Creates a store with 200 entries and closes it.
    private func fill(_ path: String) async throws {
        let store = try SQLiteStore(path: path)
        try await store.write(
            (0..<200).map { .put(Array(repeating: UInt8($0), count: 100 + $0 * 20), StateKey("n", "entry/\($0)")) })
        await store.close()
    }

    private func error(opening path: String) -> StateStoreError? {
        do throws(StateStoreError) {
            _ = try SQLiteStore(path: path)
            return nil
        } catch {
            return error
        }
    }

    struct Damage: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let codes: Set<StateStoreError.Code>
        let apply: @Sendable (inout [UInt8]) -> Void

        init(_ name: String, _ codes: Set<StateStoreError.Code>, _ apply: @escaping @Sendable (inout [UInt8]) -> Void) {
            testDescription = name
            self.codes = codes
            self.apply = apply
        }
    }

    static let damages: [Damage] = [
        Damage("nothing left", [.damaged]) { $0 = [] },
        Damage("the first 10 bytes left", [.notAStore]) { $0 = Array($0.prefix(10)) },
        Damage("the first 100 bytes left", [.damaged, .notAStore]) { $0 = Array($0.prefix(100)) },
        Damage("the first page left", [.damaged]) { $0 = Array($0.prefix(4096)) },
        Damage("the last page lost", [.damaged]) { $0.removeLast(4096) },
        Damage("half of it lost", [.damaged]) { $0 = Array($0.prefix($0.count / 8192 * 4096)) },
        Damage("the header overwritten", [.notAStore]) {
            $0.replaceSubrange(0..<100, with: Array(repeating: 0xA5, count: 100))
        },
        Damage("the header zeroed", [.notAStore]) {
            $0.replaceSubrange(0..<100, with: Array(repeating: 0, count: 100))
        },
        Damage("text", [.notAStore]) { $0 = Array("# settings\nport = 8080\n".utf8) },
        Damage("a page zeroed", [.damaged]) {
            let page = $0.count / 8192
            $0.replaceSubrange(page * 4096..<(page + 1) * 4096, with: Array(repeating: 0, count: 4096))
        },
    ]

    @Test("a damaged file is refused", arguments: damages)
    func damaged(damage: Damage) async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        var bytes = FileBytes.read(folder.file())
        damage.apply(&bytes)
        FileBytes.write(bytes, folder.file())
        let found = try #require(error(opening: folder.file()))
        #expect(damage.codes.contains(found.code), "\(found.code): \(found)")
        #expect(found.message.contains(folder.file()))
        #expect(FileBytes.read(folder.file()) == bytes, "the file is unchanged")
    }

    @Test(
        "garbage anywhere is detected, unless it lies where nothing is stored", arguments: 1...20 as ClosedRange<UInt64>
    )
    func garbage(seed: UInt64) async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        let intact = FileBytes.read(folder.file())
        var random = RandomSource(seed: seed)
        for length in [1, 8, 500, 4096] {
            var bytes = intact
            let start = Int.random(in: 100..<bytes.count - length, using: &random)
            for index in start..<start + length { bytes[index] = .random(in: 0...255, using: &random) }
            FileBytes.write(bytes, folder.file())
            for name in ["data.db-wal", "data.db-shm"] { unlink(folder.file(name)) }
            let store: SQLiteStore
            do throws(StateStoreError) {
                store = try SQLiteStore(path: folder.file())
            } catch {
                #expect([.damaged, .notAStore, .newerSchema].contains(error.code), "\(error.code): \(error)")
                continue
            }
            let entries = try await store.list("n")
            #expect(entries.count == 200, "seed \(seed), \(length) bytes at \(start)")
            for entry in entries {
                let number = try #require(Int(entry.key.name.dropFirst("entry/".count)))
                #expect(entry.value == Array(repeating: UInt8(number), count: 100 + number * 20))
            }
            await store.close()
        }
    }

    @Test("a log without its database file is refused")
    func missingFile() async throws {
        let folder = try TemporaryFolder()
        FileBytes.write([1, 2, 3], folder.file("data.db-wal"))
        let found = try #require(error(opening: folder.file()))
        #expect(found.code == .damaged)
        #expect(folder.names.contains("data.db-wal"))
        #expect(!folder.names.contains("data.db"))
    }

    @Test("a database of another program or of a newer schema is refused")
    func foreign() async throws {
        let folder = try TemporaryFolder()
        try change(folder.file("other.db"), "CREATE TABLE contacts (name TEXT)")
        chmod(folder.file("other.db"), 0o600)
        let other = try #require(error(opening: folder.file("other.db")))
        #expect(other.code == .notAStore)
        #expect(other.message.contains("another program"))

        try await fill(folder.file())
        try change(folder.file(), "UPDATE schema SET version = 4")
        let newer = try #require(error(opening: folder.file()))
        #expect(newer.code == .newerSchema)
        #expect(newer.message.contains("schema version 4"))

        try change(folder.file(), "DROP TABLE schema")
        #expect(error(opening: folder.file())?.code == .damaged)
    }

    @Test("a row altered while the store is open is an error when it is read, by its key and in a list")
    func altered() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        try await store.write([.put([1, 2, 3], StateKey("n", "a")), .put([4], StateKey("n", "b"))])
        try change(folder.file(), "UPDATE entries SET value = x'010204' WHERE name = 'a'")
        let byKey = await #expect(throws: StateStoreError.self) { _ = try await store.get(StateKey("n", "a")) }
        #expect(byKey?.code == .damaged && byKey?.message.contains("checksum") == true)
        let listed = await #expect(throws: StateStoreError.self) { _ = try await store.list("n") }
        #expect(listed?.code == .damaged)
        #expect(try await store.get(StateKey("n", "b")) == [4], "intact data can be read")
        await store.close()
    }

    @Test("after an error that leaves the disk's content unknown, nothing is written until the store is reopened")
    func finalError() async throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(path: folder.file())
        try await store.put([1], StateKey("n", "a"))
        // Simulates a disk error, which SQLite also reports with an unspecific code.
        try change(
            folder.file(),
            "CREATE TRIGGER broken BEFORE INSERT ON entries WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END")
        let first = await #expect(throws: StateStoreError.self) { try await store.put([2], StateKey("n", "bad")) }
        #expect(first?.code == .failed)
        let next = await #expect(throws: StateStoreError.self) { try await store.put([3], StateKey("n", "b")) }
        #expect(next?.code == .failed && next?.message.contains("open the store again") == true)
        #expect(try await store.get(StateKey("n", "a")) == [1], "reads still succeed")
        #expect(try await store.get(StateKey("n", "b")) == nil)
        await store.close()
        let again = try SQLiteStore(path: folder.file())
        try await again.put([3], StateKey("n", "b"))
        await again.close()
    }

    private func change(_ path: String, _ sql: String) throws {
        var handle: OpaquePointer?
        try #require(sqlite3_open(path, &handle) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        try #require(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK)
    }

    @Test("a folder, a path without its folder and a path below a file are refused")
    func unusable() async throws {
        let folder = try TemporaryFolder()
        #expect(error(opening: folder.path)?.code == .notAStore)
        #expect(error(opening: folder.file("none/data.db"))?.code == .unwritable)
        FileBytes.write([1], folder.file("plain"))
        #expect(error(opening: folder.file("plain/data.db"))?.code == .unwritable)
        #expect(error(opening: "")?.code == .unwritable)
        #expect(folder.names == ["plain"])
    }

    @Test("a folder without write permission is refused", .enabled(if: geteuid() != 0))
    func unwritable() async throws {
        let folder = try TemporaryFolder()
        chmod(folder.path, 0o555)
        defer { chmod(folder.path, 0o755) }
        #expect(error(opening: folder.file())?.code == .unwritable)
    }

    @Test(
        "each SQLite error has a code and names the file",
        arguments: [
            (SQLITE_CORRUPT, StateStoreError.Code.damaged), (SQLITE_NOTADB, .notAStore), (SQLITE_BUSY, .inUse),
            (SQLITE_BUSY | (2 << 8), .inUse), (SQLITE_FULL, .full), (SQLITE_READONLY, .unwritable),
            (SQLITE_READONLY | (5 << 8), .unwritable), (SQLITE_CANTOPEN, .unwritable), (SQLITE_TOOBIG, .tooLarge),
            (SQLITE_IOERR, .failed), (SQLITE_IOERR | (4 << 8), .failed), (SQLITE_NOMEM, .failed),
        ])
    func codes(result: Int32, code: StateStoreError.Code) {
        let error = StateStoreError(sqlite: result, "what SQLite says", path: "/a/b.db")
        #expect(error.code == code)
        #expect(error.message.contains("/a/b.db"))
        #expect(error.message.contains("what SQLite says"))
    }
}
