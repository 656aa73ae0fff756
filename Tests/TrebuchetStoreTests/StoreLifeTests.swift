import Glibc
import Testing
import Trebuchet

@testable import TrebuchetStore

/// Whether logs of a file go on in their epochs when it is opened again.
@Suite struct StoreLifeTests {
    private static let key = StateKey("states", "todos.state")

    /// Opens the file, and gives the epoch of its log; makes one when there is none.
    private func epoch(_ path: String, _ options: SQLiteStore.Options = .init()) async throws -> String {
        let store = try SQLiteStore(path: path, options: options)
        if try await store.log(Self.key) == nil {
            try await store.write([
                .snapshot(LogSnapshot(epoch: "one", number: 3, bytes: [1, 2]), Self.key),
                .append(LogEntry(number: 4, base: 3, bytes: [7]), Self.key),
            ])
        }
        let log = try #require(try await store.log(Self.key))
        #expect(log.snapshot.number == 3)
        #expect(log.snapshot.bytes == [1, 2])
        #expect(log.entries == [LogEntry(number: 4, base: 3, bytes: [7])])
        await store.close()
        return log.snapshot.epoch
    }

    private func copy(_ path: String, _ other: String) {
        FileBytes.write(FileBytes.read(path), other)
        chmod(other, 0o600)
    }

    @Test("a file that is as it was left goes on", arguments: SQLiteStore.Durability.allCases)
    func goesOn(durability: SQLiteStore.Durability) async throws {
        let folder = try TemporaryFolder()
        var options = SQLiteStore.Options()
        options.durability = durability
        for _ in 0..<3 { #expect(try await epoch(folder.file("a.db"), options) == "one") }
    }

    @Test("a copy, and a file that was put back, begin new epochs, and go on from there")
    func copies() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        #expect(try await epoch(path) == "one")
        copy(path, folder.file("copy.db"))
        let copied = try await epoch(folder.file("copy.db"))
        #expect(copied != "one")
        #expect(try await epoch(folder.file("copy.db")) == copied)
        copy(path, folder.file("old.db"))
        #expect(try await epoch(path) == "one")
        copy(folder.file("old.db"), path)
        #expect(try await epoch(path) != "one")
    }

    @Test("after a start of the machine logs go on where transactions have waited for the disk, and there alone")
    func starts() async throws {
        let folder = try TemporaryFolder()
        for (durability, goesOn) in [(SQLiteStore.Durability.powerLoss, true), (.processEnd, false)] {
            let path = folder.file("\(durability).db")
            var options = SQLiteStore.Options()
            options.durability = durability
            options.boot = "first"
            #expect(try await epoch(path, options) == "one")
            options.boot = "second"
            #expect(try await epoch(path, options) == "one" ? goesOn : !goesOn)
        }
    }
}
