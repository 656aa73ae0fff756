import Glibc
import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetServices
import TrebuchetTesting

@testable import TrebuchetStore

/// Files of an open store that are removed, moved or replaced: no write that the next process would not find is acknowledged.
@Suite(.timeLimit(.minutes(5))) struct MissingFileTests {
    enum Change: CaseIterable { case logRemoved, moved, replaced, folderMoved }

    /// A store in a folder that is removed at the end.
    private final class Fixture {
        let folder: TemporaryFolder
        let store: SQLiteStore
        private var isFolderMoved = false

        init() throws {
            folder = try TemporaryFolder()
            store = try SQLiteStore(path: folder.file())
        }

        func apply(_ change: Change) throws {
            switch change {
            case .logRemoved: #expect(unlink(folder.file("data.db-wal")) == 0)
            case .moved: #expect(rename(folder.file(), folder.file("moved")) == 0)
            case .replaced:
                #expect(rename(folder.file(), folder.file("moved")) == 0)
                try StoreFile.create(folder.file())
            case .folderMoved: #expect(rename(folder.path, folder.path + "-moved") == 0)
            }
        }

        func revert(_ change: Change) {
            switch change {
            case .logRemoved: break
            case .moved, .replaced: #expect(rename(folder.file("moved"), folder.file()) == 0)
            case .folderMoved: #expect(rename(folder.path + "-moved", folder.path) == 0)
            }
        }
    }

    @Test(
        "when a file is removed, moved or replaced, no later write is acknowledged or kept, and no earlier one is lost",
        arguments: Change.allCases)
    func refused(change: Change) async throws {
        let fixture = try Fixture()
        let (store, folder) = (fixture.store, fixture.folder)
        try await store.put([1], StateKey("n", "a"))
        try fixture.apply(change)
        let first = await #expect(throws: StateStoreError.self) { try await store.put([2], StateKey("n", "b")) }
        let name = folder.file(change == .logRemoved ? "data.db-wal" : "data.db")
        let message = try #require(first).message
        #expect(first?.code == .failed && message.contains("\(name) was moved or removed"), "\(message)")
        // The message leads to the content.
        let open = try #require(message.firstRange(of: "/proc/\(getpid())/fd/")).lowerBound
        let path = String(message[open...].prefix { $0 != " " })
        #expect(!FileBytes.read(path).isEmpty, "\(path)")
        fixture.revert(change)
        // Nor when the file is back: nobody knows what it has missed.
        let next = await #expect(throws: StateStoreError.self) { try await store.put([3], StateKey("n", "c")) }
        #expect(next?.message == message + "; writes are disabled, open the store again")
        let later = await #expect(throws: StateStoreError.self) { try await store.put([3], StateKey("n", "c")) }
        #expect(later?.message == next?.message)
        await #expect(throws: StateStoreError.self) { try await store.checkFileLocation() }
        #expect(try await store.get(StateKey("n", "a")) == [1], "reads still succeed")
        await store.close()
        let again = try SQLiteStore(path: folder.file())
        #expect(try await again.list("n").map(\.key.name) == ["a"])
        try await again.put([4], StateKey("n", "d"))
        await again.close()
    }

    @Test("a removed index of the log is harmless: the next process builds it from the log")
    func indexRemoved() async throws {
        let (fixture, copy) = (try Fixture(), try TemporaryFolder())
        let (store, folder) = (fixture.store, fixture.folder)
        try await store.put([1], StateKey("n", "a"))
        #expect(unlink(folder.file("data.db-shm")) == 0)
        for number in 0..<100 as Range<UInt8> { try await store.put([number], StateKey("n", "\(number)")) }
        try await store.checkFileLocation()
        // What a process finds after kill -9.
        for name in ["data.db", "data.db-wal"] {
            FileBytes.write(FileBytes.read(folder.file(name)), copy.file(name))
            chmod(copy.file(name), 0o600)
        }
        let killed = try SQLiteStore(path: copy.file())
        #expect(try await killed.list("n").count == 101)
        await killed.close()
        await store.close()
        let again = try SQLiteStore(path: folder.file())
        #expect(try await again.list("n").count == 101)
        await again.close()
    }

    @Test(
        "calls that change a state end with unknownOutcome, and the server is not ready",
        arguments: Change.allCases)
    func states(change: Change) async throws {
        let fixture = try Fixture()
        let server = try await TestServer(store: fixture.store) { server in
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        }
        let diary = try await server.connect().resolve(Diary.self, id: "diary")
        try await diary.write("kept")
        try fixture.apply(change)
        let error = await #expect(throws: TrebuchetError.self) { try await diary.write("refused") }
        #expect(error?.code == .unknownOutcome)
        fixture.revert(change)
        let again = await #expect(throws: TrebuchetError.self) { try await diary.write("refused too") }
        #expect(again != nil)
        func problem() async -> String? { await server.server.readiness().first { $0.name == "store" }?.failureReason }
        // A check that took more than 2 seconds has another reason.
        #expect(await eventually { await problem()?.contains("was moved or removed") == true })
        await server.shutDown()
        await fixture.store.close()
    }

    @Test("nobody is signed in to an account that the next process would not have", arguments: Change.allCases)
    func accounts(change: Change) async throws {
        let fixture = try Fixture()
        let accounts = try await Accounts(store: fixture.store, mailer: NoMailer())
        let server = try await TestServer(access: accounts.accessPolicy) { server in
            await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        }
        func signIn() async throws {
            _ = try await server.connect().resolve(AuthService.self, id: AuthService.name).signInAsGuest()
        }
        try await signIn()
        try fixture.apply(change)
        await #expect(throws: (any Error).self) { try await signIn() }
        fixture.revert(change)
        await #expect(throws: (any Error).self) { try await signIn() }
        await server.shutDown()
        await fixture.store.close()
    }

    @Test("documents of a collection are not acknowledged", arguments: Change.allCases)
    func collections(change: Change) async throws {
        let fixture = try Fixture()
        let store = fixture.store
        var access = AccessPolicy.open
        access.identifiesCallers = true
        let server = try await TestServer(access: access) { CollectionHost.expose(on: $0, store: store) }
        let backend = TrebuchetBackend(client: try await server.connect())
        let notes: Shared<SyncedCollection<Note>> = backend.withCurrent {
            Shared(.trebuchetCollection(CollectionKey<Note>("notes")), store: SharedStore())
        }
        try await notes.create(Note(id: "1"))
        try fixture.apply(change)
        // The backend repeats a write without an outcome until it is closed.
        let isAcknowledged = Mutex(false)
        let refused = Task {
            try await notes.create(Note(id: "2"))
            isAcknowledged.withLock { $0 = true }
        }
        #expect(
            await eventually {
                do {
                    try await store.checkFileLocation()
                } catch {
                    return "\(error)".contains("writes are disabled")
                }
                return false
            })
        fixture.revert(change)
        await backend.close()
        #expect(!isAcknowledged.withLock { $0 })
        refused.cancel()
        await server.shutDown()
        await store.close()
    }
}

private struct NoMailer: MagicCodeMailer {
    func send(_ code: String, to address: String) async throws {}
}

private struct Note: Codable, Identifiable, Sendable, Equatable {
    let id: String
}
