import CSQLite
import Glibc
import Platform
import Synchronization
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetStore

/// Copies of a store's file: their content, their names, and what is refused.
@Suite(.timeLimit(.minutes(5))) struct StoreCopyTests {
    private static let key = StateKey("states", "list.state")

    /// Creates a store with values of 3 MiB and a log of two changes, and closes it.
    private func fill(_ path: String) async throws {
        let store = try SQLiteStore(path: path)
        try await store.write(
            (0..<48).map { .put(Array(repeating: UInt8($0), count: 64 << 10), StateKey("n", "entry/\($0)")) })
        try await store.write([.snapshot(LogSnapshot(epoch: "one", version: 3, bytes: [1, 2]), Self.key)])
        for number in 4...5 as ClosedRange<UInt64> {
            try await store.write([.append(LogEntry(version: number, baseVersion: number - 1, bytes: [7]), Self.key)])
        }
        await store.close()
    }

    private func backUp(_ path: String, _ target: String) -> StateStoreError? {
        failure { () throws(StateStoreError) in try StoreCopy.backUp(path, to: target) { _, _, _ in } }
    }

    private func restore(_ backup: String, _ target: String) -> StateStoreError? {
        failure { () throws(StateStoreError) in try StoreCopy.restore(backup, to: target) { _, _, _ in } }
    }

    private func failure(_ body: () throws(StateStoreError) -> Int) -> StateStoreError? {
        do throws(StateStoreError) {
            #expect(try body() > 0)
            return nil
        } catch {
            return error
        }
    }

    private func change(_ path: String, _ sql: String) throws {
        try SQLiteConnection(creating: path, busyTimeout: .seconds(5)).execute(sql)
    }

    /// Returns the stored to-do list, and its changes, as text.
    private func todos(_ store: SQLiteStore) async throws -> String {
        let log = try #require(try await store.readLog(StateKey("states", "todos.state")))
        return ([log.snapshot.bytes] + log.entries.map(\.bytes)).map { String(decoding: $0, as: UTF8.self) }.joined()
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test("a backup is one private file with the content of the store; a restored file begins a generation")
    func content() async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        #expect(backUp(folder.file(), folder.file("copy.db")) == nil)
        #expect(Set(folder.names) == ["data.db", "data.db-lock", "copy.db"])
        #expect(mode(folder.file("copy.db")) == 0o600)
        // Not in the mode of write-ahead logs, so that it can be read where no file can be created.
        #expect(FileBytes.read(folder.file("copy.db"))[18...19] == [1, 1])
        #expect(restore(folder.file("copy.db"), folder.file("restored.db")) == nil)
        #expect(Set(folder.names) == ["data.db", "data.db-lock", "copy.db", "restored.db", "restored.db-lock"])
        #expect(mode(folder.file("restored.db")) == 0o600)
        let reports = try [folder.file(), folder.file("copy.db"), folder.file("restored.db")].map { path in
            try StoreReport(of: path) { _, _ in }
        }
        #expect(reports.map(\.generation) == [1, 1, 2])
        for report in reports { #expect(report.damageCount == 0 && report.schema == report.supportedSchema) }

        let store = try SQLiteStore(path: folder.file("restored.db"))
        for entry in try await store.list("n") {
            #expect(entry.value == Array(repeating: UInt8(entry.key.name.dropFirst(6)) ?? 255, count: 64 << 10))
        }
        let log = try #require(try await store.readLog(Self.key))
        #expect(log.lastVersion == 5 && log.snapshot.epoch != "one")
        #expect(log.earlierIncarnations.first == StreamIncarnation(epoch: "one", lastVersion: 5))
        await store.close()
    }

    @Test("a backup includes the log that a killed process has left, and does not change the original")
    func leftLog() async throws {
        let folder = try TemporaryFolder()
        let server = try await ServeProcess(arguments: ["--data", folder.file()])
        let added = try await ChildProcess(
            ServeProcess.tool, ["call", "--url", server.url, "todos", "addTodo(title:)", "\"Milk\""], error: .captured
        ).finish()
        #expect(added.status == 0, "\(added.error)")
        await server.kill()
        let before = ["", "-wal"].map { FileBytes.read(folder.file("data.db" + $0)) }
        #expect(!before[1].isEmpty)
        #expect(try StoreReport(of: folder.file()) { _, _ in }.logBytes == before[1].count)
        #expect(backUp(folder.file(), folder.file("copy.db")) == nil)
        #expect(["", "-wal"].map { FileBytes.read(folder.file("data.db" + $0)) } == before)
        let store = try SQLiteStore(path: folder.file("copy.db"))
        #expect(try await todos(store).contains("Milk"))
        await store.close()
    }

    private final class FirstCall: Sendable {
        private let isFirst = Atomic(true)

        /// True once.
        var isNow: Bool { isFirst.exchange(false, ordering: .relaxed) }
    }

    @Test("the server writes while its file is copied, and the copy has the content from before")
    func whileWriting() async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        let server = try await ServeProcess(arguments: ["--data", folder.file()])
        func add(_ title: String) async throws {
            let done = try await ChildProcess(
                ServeProcess.tool, ["call", "--url", server.url, "todos", "addTodo(title:)", "\"\(title)\""],
                error: .captured
            ).finish()
            #expect(done.status == 0, "\(done.error)")
        }
        try await add("before")
        // The copying thread waits after its first step, until the server has acknowledged a write.
        let (steps, step) = AsyncStream.makeStream(of: Void.self)
        let isWritten = ThreadSemaphore()
        let first = FirstCall()
        let path = folder.file()
        async let copy: Int = onThread { () throws(StateStoreError) in
            try StoreCopy.backUp(path, to: path + ".copy", interval: .zero) { part, _, _ in
                guard part == .copying, first.isNow else { return }
                step.yield()
                isWritten.wait()
            }
        }
        for await _ in steps { break }
        try await add("meanwhile")
        isWritten.signal()
        #expect(try await copy > 3 << 20)
        #expect(await server.stop() == 0)
        let store = try SQLiteStore(path: path + ".copy")
        let text = try await todos(store)
        #expect(text.contains("before") && !text.contains("meanwhile"), "\(text)")
        await store.close()
    }

    @Test("a file of the final name is never replaced, and a draft of an ended process is")
    func names() async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        FileBytes.write([1], folder.file("taken.db"))
        let taken = try #require(backUp(folder.file(), folder.file("taken.db")))
        #expect(taken.code == .unwritable && taken.message.contains("taken.db exists and is never overwritten"))
        #expect(FileBytes.read(folder.file("taken.db")) == [1])

        FileBytes.write(Array(repeating: 9, count: 10_000), folder.file("copy.db.partial"))
        #expect(backUp(folder.file(), folder.file("copy.db")) == nil)
        #expect(!folder.names.contains("copy.db.partial"))
        let lost = try #require(backUp(folder.file(), folder.file("missing/copy.db")))
        #expect(lost.code == .unwritable && lost.message.contains("does not exist; create it"), "\(lost)")

        // While a draft is being written, another one of the same name is refused, and it is not removed.
        var draft: StoreDraft? = try StoreDraft(of: folder.file("other.db"))
        let busy = try #require(backUp(folder.file(), folder.file("other.db")))
        #expect(busy.code == .inUse && busy.message.contains("another process is writing"), "\(busy)")
        StoreCopy.removeIncomplete(of: folder.file("other.db"))
        #expect(folder.names.contains("other.db.partial"))
        // A file that appears meanwhile is not replaced either.
        FileBytes.write([2], folder.file("other.db"))
        #expect(throws: StateStoreError.self) { try draft?.publish() }
        #expect(FileBytes.read(folder.file("other.db")) == [2])
        draft = nil
        #expect(!folder.names.contains("other.db.partial"))
        FileBytes.write([], folder.file("ended.db.partial"))
        StoreCopy.removeIncomplete(of: folder.file("ended.db"))
        #expect(!folder.names.contains("ended.db.partial"))
    }

    @Test("a restored file is never created over, beside or under another one")
    func restoring() async throws {
        let folder = try TemporaryFolder()
        try await fill(folder.file())
        #expect(backUp(folder.file(), folder.file("copy.db")) == nil)
        let existing = try #require(restore(folder.file("copy.db"), folder.file()))
        #expect(existing.code == .unwritable && existing.message.contains("exists and is never overwritten"))

        let path = folder.file("other.db")
        FileBytes.write([1], path + "-wal")
        let left = try #require(restore(folder.file("copy.db"), path))
        #expect(left.code == .unwritable && left.message.contains("other.db-wal is left from another file"))
        unlink(path + "-wal")

        // An open file, also one whose name was removed.
        let store = try SQLiteStore(path: path)
        #expect(restore(folder.file("copy.db"), path)?.code == .inUse)
        unlink(path)
        unlink(path + "-wal")
        #expect(restore(folder.file("copy.db"), path)?.code == .inUse)
        #expect(backUp(folder.file("other.db"), folder.file("more.db"))?.code == .unwritable)
        await store.close()
        #expect(restore(folder.file("copy.db"), path) == nil)
        #expect(!folder.names.contains { $0.hasSuffix(".partial") })
        // Not the file that this process has open: closing it would end the locks of the store.
        let opened = try SQLiteStore(path: path)
        #expect(backUp(path, folder.file("own.db"))?.code == .inUse)
        await opened.close()
    }

    @Test("other files, newer and damaged stores are refused with their names, and leave no file")
    func refused() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file()
        #expect(backUp(path, folder.file("copy.db"))?.code == .unwritable)
        FileBytes.write([], path)
        #expect(backUp(path, folder.file("copy.db"))?.message.contains("is empty") == true)
        FileBytes.write(Array("# a text that is long enough".utf8), path)
        #expect(backUp(path, folder.file("copy.db"))?.code == .notAStore)
        #expect(backUp(folder.path, folder.file("copy.db"))?.code == .notAStore)
        unlink(path)
        FileBytes.write([], folder.file("foreign.db"))
        try change(folder.file("foreign.db"), "CREATE TABLE contacts (name TEXT)")
        let foreign = try #require(backUp(folder.file("foreign.db"), folder.file("copy.db")))
        #expect(foreign.code == .notAStore && foreign.message.contains("the database of another program"))

        try await fill(path)
        try change(path, "UPDATE entries SET value = x'00' WHERE name = 'entry/7'")
        for failed in [
            backUp(path, folder.file("copy.db")), restore(path, folder.file("copy.db")),
        ] {
            let error = try #require(failed)
            #expect(error.code == .damaged && error.message.contains("\(path) is damaged"), "\(error)")
            #expect(error.message.contains("'n/entry/7'"), "\(error)")
        }
        try change(path, "UPDATE schema SET version = 99")
        let newer = try #require(backUp(path, folder.file("copy.db")))
        #expect(newer.code == .newerSchema && newer.message.contains("schema version 99"), "\(newer)")
        #expect(!folder.names.contains { $0.hasPrefix("copy.db") && $0 != "copy.db-lock" }, "\(folder.names)")
    }

    @Test("a report names every row that cannot be read, and counts the others")
    func report() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file()
        try await fill(path)
        let intact = try StoreReport(of: path) { _, _ in }
        #expect(intact.damageCount == 0)
        #expect(intact.kinds.map(\.name) == ["n", "states"])
        #expect(intact.kinds[0].values == 48 && intact.kinds[0].bytes == 48 << 16 && intact.kinds[0].logs == 0)
        #expect(intact.kinds[1].logs == 1 && intact.kinds[1].changes == 2 && intact.kinds[1].bytes == 4)
        let names = Set(folder.names)
        try change(
            path,
            """
            UPDATE entries SET value = x'00' WHERE name IN ('entry/7', 'entry/9');
            UPDATE log_entries SET bytes = x'00' WHERE number = 5; UPDATE log_parts SET bytes = x'0000'
            """)
        let bytes = FileBytes.read(path)
        let report = try StoreReport(of: path) { _, _ in }
        #expect(
            report.damage.sorted() == [
                "checksum mismatch in 'n/entry/7'", "checksum mismatch in 'n/entry/9'",
                "checksum mismatch in change 5 of 'states/list.state'",
                "checksum mismatch in part 0 of the snapshot of 'states/list.state'",
            ])
        #expect(report.damageCount == 4 && report.kinds[0].values == 48)
        #expect(FileBytes.read(path) == bytes && Set(folder.names) == names, "the file is unchanged")
        try change(path, "DELETE FROM log_parts; UPDATE generations SET epoch = 'x'; UPDATE logs SET size = 9")
        let more = try StoreReport(of: path) { _, _ in }
        #expect(more.damage.contains("checksum mismatch in the log of 'states/list.state'"), "\(more.damage)")
        #expect(more.damage.contains("checksum mismatch in generation 1"), "\(more.damage)")
    }

    @Test("a file whose pages are damaged has a report with what is left")
    func damagedPages() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file()
        try await fill(path)
        var bytes = FileBytes.read(path)
        let page = bytes.count / 8192
        bytes.replaceSubrange(page * 4096..<(page + 1) * 4096, with: Array(repeating: 0, count: 4096))
        FileBytes.write(bytes, path)
        let report = try StoreReport(of: path) { _, _ in }
        #expect(report.damageCount > 0)
        for text in report.damage { #expect(!text.contains("restore a backup"), "\(text)") }
        #expect(backUp(path, folder.file("copy.db"))?.code == .damaged)
        #expect(!folder.names.contains("copy.db"))
    }
}
