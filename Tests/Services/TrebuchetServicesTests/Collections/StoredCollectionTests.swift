import Platform
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite("Collections in a store", .timeLimit(.minutes(5)))
struct StoredCollectionTests {
    @Test("a new collection starts at revision 0, without documents")
    func new() async throws {
        let keeper = try await RetainedLog(MemoryStore())
        #expect(keeper.table.revision == 0)
        #expect(keeper.table.isEmpty)
    }

    @Test("a write is one change in the log, as large as its data, and a value only if the count has changed")
    func oneChange() async throws {
        let store = StoppingStore()
        var keeper = try await RetainedLog(store)
        keeper.apply((0..<2_000).map { .add("\($0)", bytes: 100) })
        await keeper.write()
        let before = store.writes.count
        keeper.apply(.update(id: "7", fields: ["n": .integer(1)]))
        await keeper.write()
        keeper.apply(.add("new", bytes: 100))
        await keeper.write()
        let writes = store.writes.dropFirst(before)
        #expect(writes.map(\.count) == [1, 2])
        #expect(writes.allSatisfy { $0[0].byteCount < 600 })
        #expect(try await StoredCollection.usage(of: "collection.todos", in: store.memory).entries == 2_001)
    }

    @Test("a batch is one write, in changes of some hundred kilobytes")
    func manyInOne() async throws {
        let store = StoppingStore()
        var keeper = try await RetainedLog(store)
        keeper.apply((0..<300).map { .add("\($0)", bytes: 10_000) })
        await keeper.write()
        #expect(store.writes.count == 1)
        let entries = try await keeper.log().entries
        #expect(entries.count == 12 && entries.allSatisfy { $0.bytes.count < 300_000 })
        let again = try await keeper.again()
        #expect(again.table.documents == keeper.table.documents && again.table.documents.count == 300)
    }

    @Test(
        "a loaded collection has the written data, wherever snapshots were taken",
        arguments: 1...20 as ClosedRange<UInt64>)
    func model(seed: UInt64) async throws {
        var random = RandomSource(seed: seed)
        var keeper = try await RetainedLog(MemoryStore())
        var (snapshots, snapshot) = (0, nil as StoredCollection.Snapshot?)
        for _ in 0..<120 {
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                let id = "\(Int.random(in: 0..<40, using: &random))"
                switch Int.random(in: 0..<4, using: &random) {
                case 0: keeper.apply(.delete(id: DocumentID(id)))
                case 1: keeper.apply(.update(id: DocumentID(id), fields: ["n": .integer(Int64.random(in: 0...9))]))
                default: keeper.apply(.add(id, bytes: Int.random(in: 0...8_000, using: &random)))
                }
            }
            await keeper.write()
            // The snapshot is started after one write, and written after others.
            if let due = snapshot, Bool.random(using: &random) {
                try await keeper.stored.write(due) { true }
                snapshots += 1
                snapshot = nil
            } else if snapshot == nil {
                snapshot = keeper.snapshot
            }
            guard Int.random(in: 0..<8, using: &random) == 0 else { continue }
            var again = try await keeper.again()
            #expect(again.table.documents == keeper.table.documents, "seed \(seed)")
            #expect(again.table.revision == keeper.table.revision, "seed \(seed)")
            if let mutation = keeper.lastDone {
                #expect(again.table.secret == keeper.table.secret)
                let outcome = again.table.apply(mutation, from: RetainedLog.client, creator: nil, at: 0) { _, _ in true
                }
                #expect(outcome.error == nil && !again.table.hasUnwritten, "seed \(seed)")
            }
            // The pending snapshot is replaced as well: only one table continues the log.
            (keeper, snapshot) = (again, nil)
        }
        #expect(snapshots > 0, "seed \(seed)")
    }

    @Test("a mutation repeated after a restart has its first outcome, even a failure")
    func outcomes() async throws {
        var keeper = try await RetainedLog(MemoryStore())
        keeper.apply(.add("a"), .add("a"), .add("b"))
        await keeper.write()
        keeper.apply(.update(id: "none", fields: [:]), .update(id: "a", fields: ["n": .integer(1)]))
        await keeper.write()
        var again = try await keeper.again()
        let commands: [DocumentCommand] = [
            .add("a"), .add("a"), .add("b"), .update(id: "none", fields: [:]),
            .update(id: "a", fields: ["n": .integer(1)]),
        ]
        let errors = commands.enumerated().map { index, command in
            again.table.apply(
                DocumentMutation(number: index + 1, command: command), from: RetainedLog.client, creator: nil, at: 0
            ) { _, _ in true }.error
        }
        #expect(errors == [nil, .alreadyExists(id: "a"), nil, .notFound(id: "none"), nil])
        #expect(!again.table.hasUnwritten)
    }

    @Test("a log has at most twice the size of a snapshot plus 64 KiB; slices have 256 KiB")
    func snapshots() async throws {
        let store = StoppingStore()
        var keeper = try await RetainedLog(store)
        func keep(isLookedAt: Bool = true) async throws {
            await keeper.write()
            if let due = keeper.snapshot { try await keeper.stored.write(due) { true } }
            guard isLookedAt else { return }
            let log = try await keeper.log()
            let bytes = log.entries.reduce(log.snapshot.bytes.count) { $0 + $1.bytes.count }
            #expect(bytes <= 2 * (keeper.table.shares.all.bytes + 3_000) + CollectionLogLocation.least)
        }
        for first in stride(from: 0, to: 1_000, by: 100) {
            keeper.apply((first..<first + 100).map { .add("\($0)", bytes: 2_000) })
            try await keep()
        }
        for number in 0..<3_000 {
            keeper.apply(.update(id: "\(number % 1_000)", fields: ["n": .integer(Int64(number))]))
            try await keep(isLookedAt: number % 100 == 0)
        }
        let parts = store.writes.flatMap { $0 }.filter { if case .snapshotPart = $0.operation { true } else { false } }
        #expect(parts.count >= 8 && parts.allSatisfy { $0.byteCount < (256 << 10) + 3_000 })
        for first in stride(from: 0, to: 1_000, by: 100) {
            keeper.apply((first..<first + 100).map { .delete(id: "\($0)") })
            try await keep()
        }
        #expect(try await keeper.again().table.documents.isEmpty)
    }

    @Test("a collection writes snapshots concurrently with its clients' writes, and is unloaded when they are complete")
    func otherStates() async throws {
        let store = MemoryStore()
        let key = StateKey("collection.todos", "log")
        var limits = CollectionLimits()
        limits.idleTime = .milliseconds(1)
        limits.idleQueryTime = .zero
        var epoch: String?
        try await CollectionTestEnvironment.run(store: store, limits: limits) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            _ = try await guest.collection().commit([.add("a", bytes: 20_000)], from: RetainedLog.client)
            epoch = try await store.readLog(key)?.snapshot.epoch
            for number in 0..<60 {
                let update = DocumentCommand.update(id: "a", fields: ["n": .integer(Int64(number))])
                _ = try await guest.collection().commit([update], from: RetainedLog.client, at: number + 2)
            }
            #expect(await eventually { environment.host.collectionCount == 0 })
        }
        let log = try #require(try await store.readLog(key))
        // Started once, and never as long as 60 entries of 20,000 bytes.
        #expect(log.snapshot.epoch == epoch && log.snapshot.bytes.count > 20_000 && log.entries.count < 20)
        let again = try await RetainedLog(store)
        #expect(again.table.document("a")?.fields["n"] == .integer(59))
    }

    @Test("a failed snapshot is repeated when the log has grown by half, and data written meanwhile is kept")
    func failingSnapshot() async throws {
        let memory = MemoryStore()
        var keeper = try await RetainedLog(memory)
        keeper.apply(.add("a", bytes: 20_000))
        for number in 0..<8 {
            keeper.apply(.update(id: "a", fields: ["n": .integer(Int64(number))]))
            await keeper.write()
        }
        let due = try #require(keeper.snapshot)
        await #expect(throws: CancellationError.self) { try await keeper.stored.write(due) { false } }
        keeper.apply(.update(id: "a", fields: ["n": .integer(9)]))
        await keeper.write()
        #expect(keeper.snapshot == nil)
        #expect(try await keeper.again().table.documents == keeper.table.documents)
        for _ in 0..<4 {
            keeper.apply(.update(id: "a", fields: ["n": .null]), .update(id: "a", fields: ["n": .integer(9)]))
            await keeper.write()
        }
        let other = try #require(keeper.snapshot)
        try await keeper.stored.write(other) { true }
        #expect(try await keeper.log().entries.isEmpty && keeper.snapshot == nil)
    }

    @Test("a foreign entry in the log fails one write, and the log restarts with the acknowledged data")
    func conflict() async throws {
        let memory = MemoryStore()
        var keeper = try await RetainedLog(memory)
        keeper.apply((0..<50).map { .add("\($0)", bytes: 10_000) })
        await keeper.write()
        let last = try await keeper.log().lastVersion
        try await memory.write([
            .append(LogEntry(version: last + 1, baseVersion: last, bytes: []), StateKey("collection.todos", "log"))
        ])
        keeper.apply(.add("lost"))
        #expect(await keeper.write() == false)
        keeper.apply(.add("new"))
        #expect(await keeper.write())
        let again = try await keeper.again()
        #expect(again.table.documents == keeper.table.documents && again.table.documents.count == 51)
        #expect(again.table.document("lost") == nil && again.table.document("new") != nil)
    }

    @Test("a missing log is damage, and not an empty collection")
    func missingLog() async throws {
        let memory = MemoryStore()
        var keeper = try await RetainedLog(memory)
        keeper.apply(.add("a"))
        await keeper.write()
        try await memory.write([StateWrite(StateKey("collection.todos", "log"), .deleteLog)])
        let error = await #expect(throws: CollectionError.self) { _ = try await keeper.again() }
        #expect(error.map { "\($0)".contains("is missing") } == true)
    }

    @Test("a copy of documents is independent of later changes")
    func copies() {
        var documents = DocumentMap((0..<1_000).map { Document(id: "\($0)", fields: [:], created: $0) })
        let copy = documents
        for number in 0..<500 { documents.remove("\(number)") }
        documents["new"] = Document(id: "new", fields: [:])
        documents["none"] = nil
        #expect(documents.count == 501 && Set(documents.keys).count == 501 && documents["7"] == nil)
        #expect(copy.count == 1_000 && copy.values.count == 1_000 && copy["7"]?.creationRevision == 7)
        #expect(copy != documents && copy == DocumentMap(copy.values))
    }
}
