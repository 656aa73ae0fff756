import Glibc
import Testing
import Trebuchet
import TrebuchetActors

@testable import TrebuchetStore

/// The incarnations of logs in a file that is reopened, restored, copied or truncated.
@Suite(.timeLimit(.minutes(5))) struct StoreGenerationsTests {
    /// Ways to restore a file. No way requires the operator to remove the lock, which is wrong in most of these cases.
    enum RestoreMethod: CaseIterable {
        case withLockOfLater, withItsOwnLock, withoutLock, withoutItsLog, overTheFile
    }

    private static let key = StateKey("states", "todos.state")

    /// Opens the store for the duration of a body.
    private func open<Result>(
        _ path: String, _ options: SQLiteStore.Options = .init(), _ body: (SQLiteStore) async throws -> Result
    ) async throws -> Result {
        let store = try SQLiteStore(path: path, options: options)
        let result = try await body(store)
        await store.close()
        return result
    }

    private func log(_ store: SQLiteStore) async throws -> StoredLog { try #require(try await store.readLog(Self.key)) }

    private func begin(_ store: SQLiteStore) async throws {
        try await store.write([.snapshot(LogSnapshot(epoch: "one", version: 3, bytes: [1, 2]), Self.key)])
    }

    private func append(_ numbers: ClosedRange<UInt64>, _ store: SQLiteStore) async throws {
        for number in numbers {
            try await store.write([.append(LogEntry(version: number, baseVersion: number - 1, bytes: [7]), Self.key)])
        }
    }

    private func copy(_ path: String, _ other: String) {
        FileBytes.write(FileBytes.read(path), other)
        chmod(other, 0o600)
    }

    @Test(
        "each opening starts an incarnation of a log that knows the last versions of the earlier ones",
        arguments: SQLiteStore.Durability.allCases)
    func incarnations(durability: SQLiteStore.Durability) async throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.durability = durability
        try await open(folder.file(), options) { (store) async throws in
            try await begin(store)
            try await append(4...5, store)
            #expect(try await log(store).snapshot.epoch == "one")
            #expect(try await log(store).earlierIncarnations == [])
        }
        var expected = [StreamIncarnation(epoch: "one", lastVersion: 5)]
        for round in 0..<3 as Range<UInt64> {
            try await open(folder.file(), options) { (store) async throws in
                let found = try await log(store)
                #expect(found.earlierIncarnations == expected)
                #expect(found.entries.map(\.version) == Array(4...5 + round) && found.snapshot.version == 3)
                // The epoch stays the same, however often the log is read and written.
                try await append(6 + round...6 + round, store)
                #expect(try await log(store).snapshot.epoch == found.snapshot.epoch)
                expected.append(StreamIncarnation(epoch: found.snapshot.epoch, lastVersion: 6 + round))
            }
        }
        // An incarnation without writes was visible all the same.
        let unwritten = try await open(folder.file(), options) { try await log($0).snapshot.epoch }
        try await open(folder.file(), options) { (store) async throws in
            let found = try await log(store)
            #expect(found.earlierIncarnations == expected + [StreamIncarnation(epoch: unwritten, lastVersion: 8)])
            #expect(
                Set(found.earlierIncarnations.map(\.epoch) + [found.snapshot.epoch]).count == found.earlierIncarnations
                    .count + 1)
        }
    }

    @Test(
        "a restored file knows only the versions that it has, whatever files lie beside it",
        arguments: RestoreMethod.allCases)
    func restored(restoring: RestoreMethod) async throws {
        let folder = try TemporaryFolder()
        let (path, backup) = (folder.file(), folder.file("backup"))
        var (first, second) = ("", "")
        try await open(path) { (store) async throws in
            try await begin(store)
            try await append(4...20, store)
        }
        try await open(path) { (store) async throws in
            first = try await log(store).snapshot.epoch
            try await append(21...40, store)
            // Without its log the file has the merged pages only: it has lost its end.
            for suffix in restoring == .withoutItsLog ? ["", "-lock"] : ["", "-wal", "-lock"] {
                copy(path + suffix, backup + suffix)
            }
            try await append(41...50, store)
        }
        if restoring == .overTheFile {
            // A later process has opened it, too.
            try await open(path) { (store) async throws in
                second = try await log(store).snapshot.epoch
                try await append(51...60, store)
            }
        }
        if restoring != .overTheFile { unlink(path) }
        copy(backup, path)
        if restoring != .withoutItsLog { copy(backup + "-wal", path + "-wal") }
        if restoring == .withItsOwnLock { copy(backup + "-lock", path + "-lock") }
        if restoring == .withoutLock { unlink(path + "-lock") }
        let last: UInt64 = restoring == .withoutItsLog ? 20 : 40
        let third = try await open(path) { (store) async throws in
            let found = try await log(store)
            #expect(found.lastVersion == last)
            #expect(!["one", first, second].contains(found.snapshot.epoch))
            let incarnations = Dictionary(
                uniqueKeysWithValues: found.earlierIncarnations.map { ($0.epoch, $0.lastVersion) })
            #expect(incarnations["one"] == 20)
            // The incarnation lists only versions in the file, and unknown incarnations are absent.
            #expect(incarnations[first] == (restoring == .withoutItsLog ? nil : 40))
            #expect(incarnations[second] == nil)
            try await append(last + 1...last + 20, store)
            return found.snapshot.epoch
        }
        try await open(path) { (store) async throws in
            #expect(
                try await log(store).earlierIncarnations.last == StreamIncarnation(epoch: third, lastVersion: last + 20)
            )
            #expect(try await log(store).earlierIncarnations.first { $0.epoch == first }?.lastVersion ?? last == last)
        }
        for suffix in ["", "-wal", "-lock"] { unlink(backup + suffix) }
    }

    @Test("two copies of a file continue from their common content in separate incarnations")
    func copies() async throws {
        let folder = try TemporaryFolder()
        try await open(folder.file()) { (store) async throws in
            try await begin(store)
            try await append(4...5, store)
        }
        copy(folder.file(), folder.file("copy"))
        var epochs: [String] = []
        for name in ["data.db", "copy"] {
            try await open(folder.file(name)) { (store) async throws in
                let found = try await log(store)
                #expect(found.earlierIncarnations == [StreamIncarnation(epoch: "one", lastVersion: 5)])
                epochs.append(found.snapshot.epoch)
                try await append(6...6, store)
            }
        }
        #expect(epochs[0] != epochs[1])
    }

    @Test("a snapshot keeps the incarnations of its log; one of another epoch, and a restarted log, have none")
    func snapshots() async throws {
        let folder = try TemporaryFolder()
        try await open(folder.file()) { try await begin($0) }
        try await open(folder.file()) { (store) async throws in
            let epoch = try await log(store).snapshot.epoch
            try await append(4...6, store)
            try await store.write([.snapshot(LogSnapshot(epoch: epoch, version: 5, bytes: [9]), Self.key)])
            let found = try await log(store)
            #expect(
                found.earlierIncarnations == [StreamIncarnation(epoch: "one", lastVersion: 3)]
                    && found.snapshot.epoch == epoch)
            #expect(found.entries.map(\.version) == [6])
            try await store.write([.snapshot(LogSnapshot(epoch: "two", version: 1, bytes: [9]), Self.key)])
            #expect(try await log(store).earlierIncarnations == [])
        }
        try await open(folder.file()) { (store) async throws in
            #expect(try await log(store).earlierIncarnations == [StreamIncarnation(epoch: "two", lastVersion: 1)])
            try await store.write([StateWrite(Self.key, .deleteLog)])
            try await begin(store)
            #expect(try await log(store).earlierIncarnations == [])
        }
    }

    @Test("a conflicting change starts no incarnation")
    func conflict() async throws {
        let folder = try TemporaryFolder()
        try await open(folder.file()) { try await begin($0) }
        try await open(folder.file()) { (store) async throws in
            await #expect(throws: StateStoreError.self) { try await append(9...9, store) }
            try await append(4...4, store)
            #expect(try await log(store).earlierIncarnations == [StreamIncarnation(epoch: "one", lastVersion: 3)])
        }
    }

    @Test("the last 64 incarnations are recorded, also for a log without writes")
    func most() async throws {
        let folder = try TemporaryFolder()
        try await open(folder.file()) { try await begin($0) }
        for round in 0..<70 {
            try await open(folder.file()) { (store) async throws in
                if round < 3 { try await append(4 + UInt64(round)...4 + UInt64(round), store) }
            }
        }
        try await open(folder.file()) { (store) async throws in
            #expect(try await log(store).earlierIncarnations.count == LogIncarnations.maximumEarlierIncarnations)
            #expect(try await log(store).earlierIncarnations.allSatisfy { $0.lastVersion == 6 })
        }
    }

    @Test("a file of schema 2 is migrated: its logs continue from their epoch")
    func olderFile() async throws {
        let folder = try TemporaryFolder()
        try await open(folder.file()) { (store) async throws in
            try await begin(store)
            try await append(4...5, store)
        }
        do {
            let connection = try SQLiteConnection(creating: folder.file(), busyTimeout: .seconds(5))
            let row = try SQLiteStatement("SELECT \(LogRow.columns) FROM logs", connection)
            #expect(try row.step())
            var log = try LogRow(row, of: Self.key, in: folder.file())
            log.generation = 0
            row.reset()
            try connection.execute(
                """
                DROP TABLE generations; ALTER TABLE logs DROP COLUMN generation; ALTER TABLE logs DROP COLUMN lives;
                UPDATE schema SET version = 2; UPDATE logs SET checksum = \(log.checksum(Self.key))
                """)
        }
        try await open(folder.file()) { (store) async throws in
            #expect(try await log(store).earlierIncarnations == [StreamIncarnation(epoch: "one", lastVersion: 5)])
            try await append(6...6, store)
        }
        try await open(folder.file()) { (store) async throws in #expect(try await log(store).lastVersion == 6) }
        #expect(folder.names.contains("data.db.schema2"))
    }
}
