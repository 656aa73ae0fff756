import Synchronization
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// A collection and its store without clients: a table and its persistence.
struct RetainedLog {
    let store: any StateStore
    let stored: StoredCollection
    var table: DocumentTable
    private var number = 0
    /// The last mutation with an effect.
    private(set) var lastDone: DocumentMutation?

    static let client = "0123456789abcdef"

    init(_ store: any StateStore, number: Int = 0) async throws {
        self.store = store
        self.number = number
        stored = StoredCollection("todos", in: store)
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        var limits = CollectionLimits()
        limits.documentsPerCollection = 100_000
        limits.collectionBytes = 64 << 20
        table = try await stored.load(limits, at: server, now: 0)
    }

    /// Applies commands, each as a separate mutation, without writing.
    mutating func apply(_ commands: DocumentCommand...) { apply(commands) }

    mutating func apply(_ commands: [DocumentCommand]) {
        for command in commands {
            number += 1
            let mutation = DocumentMutation(number: number, command: command)
            let before = table.revision
            _ = table.apply(mutation, from: Self.client, creator: nil, at: 0) { _, _ in true }
            if table.revision > before { lastDone = mutation }
        }
    }

    /// Writes the changes; false when that fails.
    @discardableResult
    mutating func write() async -> Bool {
        guard let batch = table.beginWrite() else { return true }
        do {
            let contents = table.contents(at: table.revision - batch.documents.count)
            try await stored.write(batch, over: stored.isBegun ? nil : contents)
        } catch {
            table.discardUnwritten()
            return false
        }
        _ = table.endWrite(batch)
        return true
    }

    /// A snapshot, when one is due.
    var snapshot: StoredCollection.Snapshot? {
        stored.snapshotIfDue(by: table.shares.all.bytes) { table.contents(at: table.revision) }
    }

    /// The log in the store.
    func log() async throws -> StoredLog { try #require(try await store.readLog(StateKey("collection.todos", "log"))) }

    /// The collection, loaded again.
    func again() async throws -> RetainedLog { try await RetainedLog(store, number: number) }
}

extension DocumentCommand {
    /// A document with a text of this number of bytes.
    static func add(_ id: String, bytes: Int) -> Self {
        .add(DocumentID(id), ["t": .string(String(repeating: "x", count: bytes))])
    }
}

/// A store that fails from a certain write on, and records writes.
final class StoppingStore: StateStore {
    let memory: MemoryStore
    private let state: Mutex<(left: Int, writes: [[StateWrite]])>

    /// - Parameter writes: the number of writes that succeed.
    init(_ memory: MemoryStore = MemoryStore(), after writes: Int = .max) {
        self.memory = memory
        state = Mutex((writes, []))
    }

    /// The successful writes.
    var writes: [[StateWrite]] { state.withLock { $0.writes } }

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] { try await memory.get(keys) }
    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await memory.list(namespace, prefix: prefix, after: after, limit: limit)
    }
    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await memory.readLog(key) }
    func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        let isDone = state.withLock { state in
            guard state.left > 0 else { return false }
            state.left -= 1
            state.writes.append(writes)
            return true
        }
        guard isDone else { throw StateStoreError(.full, "the power is away") }
        try await memory.write(writes)
    }
}
