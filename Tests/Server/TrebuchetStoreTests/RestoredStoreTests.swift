import CSQLite
import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetServices
import TrebuchetStore
import TrebuchetTesting

/// Clients that have seen versions that their server lacks: its file was restored, or has lost its end.
@Suite(.timeLimit(.minutes(5))) struct RestoredStoreTests {
    enum Ending: CaseIterable { case stopped, killed }

    /// A server over a file, and clients that reconnect to it.
    private final class StoreFixture {
        let folder: TemporaryFolder
        let store: SwitchedStore
        let server: TestServer

        /// - Parameter prepare: exposes the actors; nil for a diary that the server persists.
        init(_ prepare: (@Sendable (TrebuchetServer, SwitchedStore) -> Void)? = nil) async throws {
            folder = try TemporaryFolder()
            let store = SwitchedStore(try SQLiteStore(path: folder.file()))
            self.store = store
            var access = AccessPolicy.open
            access.identifiesCallers = true
            server = try await TestServer(access: access, store: prepare == nil ? store : nil) { server in
                if let prepare { return prepare(server, store) }
                await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
            }
        }

        func client() async throws -> TrebuchetClient {
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(5)
            options.reconnect.maximumDelay = .milliseconds(50)
            return try await server.connect(options)
        }

        /// Copies the file as it is, as `sqlite3 FILE ".backup backup"` does.
        func backUp() throws {
            var (source, target): (OpaquePointer?, OpaquePointer?)
            try #require(sqlite3_open(folder.file(), &source) == SQLITE_OK)
            defer { sqlite3_close(source) }
            try #require(sqlite3_open(folder.file("backup"), &target) == SQLITE_OK)
            defer { sqlite3_close(target) }
            let backup = try #require(sqlite3_backup_init(target, "main", source, "main"))
            sqlite3_backup_step(backup, -1)
            try #require(sqlite3_backup_finish(backup) == SQLITE_OK)
        }

        /// Stops the server, restores the copy beside the existing lock, and starts the server again.
        func restore(_ ending: Ending) async throws {
            if ending == .killed { await server.kill() } else { await server.stop(drain: .zero) }
            await store.current.close()
            FileBytes.write(FileBytes.read(folder.file("backup")), folder.file())
            store.replace(with: try SQLiteStore(path: folder.file()))
            try await server.restart()
        }

        func end() async {
            await server.shutDown()
            await store.current.close()
        }
    }

    @Test(
        "a client that has seen later versions than a restored server is sent the restored state and all later changes",
        arguments: Ending.allCases)
    func states(ending: Ending) async throws {
        let fixture = try await StoreFixture()
        let diary = try await fixture.client().resolve(Diary.self, id: "diary")
        var words = await diary.observeWord().makeAsyncIterator()
        var pages = await diary.observePages().makeAsyncIterator()
        var every = await diary.observeEvery().makeAsyncIterator()
        #expect(await every.next() == "")
        for number in 1...50 {
            try await diary.write("old \(number)")
            #expect(await every.next() == "old \(number)")
            if number == 40 { try fixture.backUp() }
        }
        while let word = await words.next(), word != "old 50" {}
        while let shown = await pages.next(), shown.count != 50 {}
        try await fixture.restore(ending)
        // The existing streams are reset to the restored state.
        #expect(await every.next() == "old 40")
        #expect(await words.next() == "old 40")
        #expect(await pages.next()?.map(\.text) == (1...40).map { "old \($0)" })
        for number in 41...60 {
            try await diary.write("new \(number)")
            #expect(await every.next() == "new \(number)")
        }
        while let word = await words.next(), word != "new 60" { #expect(word.hasPrefix("new")) }
        while let shown = await pages.next(), shown.count != 60 {}
        #expect(try await diary.text().count == 60)
        await fixture.end()
    }

    @Test("a client that has seen no more than a restored server resumes and is sent only the changes it missed")
    func resumed() async throws {
        let fixture = try await StoreFixture()
        let (first, second) = try await (fixture.client(), fixture.client())
        let diary = try first.resolve(Diary.self, id: "diary")
        for number in 1...20 { try await diary.write("old \(number)") }
        let stream = await (try second.resolve(Diary.self, id: "diary")).observeLines()
        var lines = stream.makeAsyncIterator()
        #expect(await eventually { stream.bookmark != nil })
        for number in 21...30 {
            try await diary.write("old \(number)")
            #expect(try await lines.next() == "old \(number)")
        }
        let place = try #require(stream.bookmark)
        await second.close()
        for number in 31...40 { try await diary.write("old \(number)") }
        try fixture.backUp()
        for number in 41...50 { try await diary.write("old \(number)") }
        try await fixture.restore(.killed)
        let again = try await fixture.client().resolve(Diary.self, id: "diary")
        try await again.write("new 41")
        var rest = await again.observeLines(since: place).makeAsyncIterator()
        for number in 31...40 { #expect(try await rest.next() == "old \(number)") }
        #expect(try await rest.next() == "new 41")
        await fixture.end()
    }

    @Test(
        "readers of events that a restored server lacks are notified of a gap and start again",
        arguments: Ending.allCases)
    func events(ending: Ending) async throws {
        let fixture = try await StoreFixture()
        let diary = try await fixture.client().resolve(Diary.self, id: "diary")
        let stream = await diary.observeLines()
        var lines = stream.makeAsyncIterator()
        #expect(await eventually { stream.bookmark != nil })
        for number in 1...50 {
            try await diary.write("old \(number)")
            #expect(try await lines.next() == "old \(number)")
            if number == 40 { try fixture.backUp() }
        }
        let place = try #require(stream.bookmark)
        try await fixture.restore(ending)
        // Enough events for numbers beyond those seen before.
        let other = try await fixture.client().resolve(Diary.self, id: "diary")
        for number in 41...60 { try await other.write("new \(number)") }
        let ended = await #expect(throws: TrebuchetError.self) { try await lines.next() }
        #expect(ended?.code == .overflow)
        var since = await diary.observeLines(since: place).makeAsyncIterator()
        let refused = await #expect(throws: TrebuchetError.self) { try await since.next() }
        #expect(refused?.code == .overflow)
        let anew = await diary.observeLines(since: nil)
        #expect(await eventually { anew.bookmark != nil })
        try await diary.write("last")
        var reader = anew.makeAsyncIterator()
        #expect(try await reader.next() == "last")
        await fixture.end()
    }

    @Test("a collection of a restored server shows its content, and its new writes never reuse a revision")
    func collections() async throws {
        let fixture = try await StoreFixture { server, store in CollectionHost.expose(on: server, store: store) }
        let backend = TrebuchetBackend(client: try await fixture.client())
        let notes: Shared<SyncedCollection<Note>> = backend.withCurrent {
            Shared(.trebuchetCollection(CollectionKey<Note>("notes")), store: SharedStore())
        }
        for number in 1...5 { try await notes.create(Note(id: "\(number)", text: "old")) }
        try fixture.backUp()
        for number in 6...8 { try await notes.create(Note(id: "\(number)", text: "old")) }
        try await notes.update("1") { $0.text = "later" }
        for await value in notes.updates where value.items[id: "1"]?.text == "later" { break }
        let last = try #require(notes.wrappedValue.document("1")?.revision)
        try await fixture.restore(.stopped)
        for await value in notes.updates where value.items.count == 5 && !value.isStale { break }
        #expect(notes.wrappedValue.items.map(\.text) == Array(repeating: "old", count: 5))
        try await notes.update("2") { $0.text = "new" }
        for await value in notes.updates where value.items[id: "2"]?.text == "new" { break }
        #expect(try #require(notes.wrappedValue.document("2")?.revision) > last)
        await backend.close()
        await fixture.end()
    }
}

private struct Note: Codable, Identifiable, Sendable, Equatable {
    let id: String
    var text: String
}

/// A store whose underlying store can be replaced while no server uses it.
private final class SwitchedStore: StateStore {
    private let store: Mutex<SQLiteStore>

    init(_ store: SQLiteStore) { self.store = Mutex(store) }

    var current: SQLiteStore { store.withLock { $0 } }
    func replace(with other: SQLiteStore) { store.withLock { $0 = other } }

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] { try await current.get(keys) }
    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await current.list(namespace, prefix: prefix, after: after, limit: limit)
    }
    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await current.readLog(key) }
    func write(_ writes: [StateWrite]) async throws(StateStoreError) { try await current.write(writes) }
}

/// An actor with a property of each kind of persistence.
@Trebuchet
distributed actor Diary {
    struct Page: Codable, Sendable, Identifiable {
        let id: Int
        let text: String
    }

    @StreamedState(persisted: true) var word: String = ""
    @StreamedState(persisted: true) var pages = KeyedCollection<Page>()
    @StreamedState(delivery: .every(), persisted: true) var every: String = ""
    @StreamedEvents(persisted: true) var lines: String

    distributed func write(_ text: String) {
        word = text
        every = text
        pages.append(Page(id: pages.count, text: text))
        $lines.send(text)
    }

    distributed func text() -> [String] { pages.map(\.text) }
}
