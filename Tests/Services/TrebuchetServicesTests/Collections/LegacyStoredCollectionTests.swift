import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// Collections in the former format, with one value for each document, before logs.
@Suite(.timeLimit(.minutes(5))) struct LegacyStoredCollectionTests {
    private static let namespace = "collection.todos"
    private static let count = 2_500

    /// A store with the data of an older server.
    private func olderStore() async throws -> MemoryStore {
        let memory = MemoryStore()
        func put(_ name: String, _ text: String) -> StateWrite {
            .put(Array(text.utf8), StateKey(Self.namespace, name))
        }
        var writes = (1...Self.count).map { number in
            put(
                "document/\(number)",
                #"{"id":"\#(number)","fields":{"id":"\#(number)","t":"\#(String(repeating: "x", count: 300))"},"#
                    + #""creator":"ada","created":\#(number),"revision":\#(number),"createdAt":1,"updatedAt":2,"origin":7}"#
            )
        }
        writes += [
            put(
                "client/\(RetainedLog.client)",
                #"{"last":8,"outcomes":[{"number":7,"revision":3},{"number":8,"revision":3,"error":{"notFound":{"id":"x"}}}],"#
                    + #""digests":[99]}"#),
            put("client/another client of 16", #"{"last":1,"outcomes":[{"number":1,"revision":9}]}"#),
            put("revision", #"{"revision":3000,"time":5000,"secret":18446744073709551615}"#),
        ]
        try await memory.write(writes)
        return memory
    }

    private func expectAll(_ keeper: RetainedLog, _ comment: Comment? = nil) {
        var table = keeper.table
        #expect(table.documents.count == Self.count, comment)
        #expect(table.document("77")?.origin == 7 && table.document("77")?.creator == "ada", comment)
        #expect(table.revision == 3_000 && table.secret == .max && table.clientCount == 2, comment)
        func error(_ number: Int, _ command: DocumentCommand) -> CollectionError? {
            table.apply(
                DocumentMutation(number: number, command: command), from: RetainedLog.client, creator: nil, at: 0
            ) {
                _, _ in true
            }.error
        }
        #expect(error(7, .add("whatever")) == nil && table.document("whatever") == nil, comment)
        #expect(error(8, .delete(id: "x")) == .notFound(id: "x"), comment)
        // Its digest is that of an earlier version.
        #expect(error(8, .delete(id: "y")) == .notFound(id: "x"), comment)
        #expect(error(6, .add("y")) == .outdated, comment)
        #expect(!table.hasUnwritten, comment)
    }

    @Test("a collection in the former format becomes a log when it is loaded, and its values are deleted")
    func takeover() async throws {
        let memory = try await olderStore()
        #expect(try await StoredCollection.usage(of: Self.namespace, in: memory).entries == Self.count)
        var keeper = try await RetainedLog(memory, number: 8)
        expectAll(keeper)
        #expect(try await memory.list(Self.namespace).map(\.key.name) == ["revision"])
        #expect(try await StoredCollection.usage(of: Self.namespace, in: memory).entries == Self.count)
        keeper.apply(.delete(id: "1"), .add("new"))
        await keeper.write()
        let again = try await keeper.again()
        #expect(again.table.documents == keeper.table.documents)
        #expect(again.table.document("1") == nil && again.table.document("new")?.creationRevision == 3_002)
    }

    @Test("the migration has bounded steps, and is either complete or undone wherever it stops")
    func interrupted() async throws {
        let whole = StoppingStore(try await olderStore())
        _ = try await RetainedLog(whole)
        let steps = whole.writes.count
        #expect(steps >= 8)
        #expect(whole.writes.allSatisfy { $0.count <= 1_000 && $0.reduce(0) { $0 + $1.byteCount } < 300_000 })
        var isLog: [Bool] = []
        for stop in 0...steps {
            let memory = try await olderStore()
            // Readers see all documents all the same.
            expectAll(try await RetainedLog(StoppingStore(memory, after: stop)), "stopped after \(stop)")
            isLog.append(try await memory.readLog(StateKey(Self.namespace, "log")) != nil)
            expectAll(try await RetainedLog(memory), "after \(stop) and a restart")
            #expect(try await memory.list(Self.namespace).map(\.key.name) == ["revision"])
        }
        #expect(isLog.first == false && isLog.last == true)
        #expect(isLog == isLog.filter { !$0 } + isLog.filter { $0 })
    }

    @Test("a migration that failed at first happens with the next write")
    func later() async throws {
        let memory = try await olderStore()
        let store = StoppingStore(memory, after: 0)
        let first = try await RetainedLog(store, number: 8)
        #expect(!first.stored.isBegun)
        // The collection after the store accepts writes again.
        var table = first.table
        _ = table.apply(
            DocumentMutation(number: 9, command: .add("new")), from: RetainedLog.client, creator: nil, at: 0
        ) { _, _ in true }
        let batch = table.beginWrite()
        let stored = StoredCollection("todos", in: memory)
        try await stored.write(try #require(batch), over: table.contents(at: 3_000))
        let again = try await RetainedLog(memory)
        #expect(again.table.documents.count == Self.count + 1 && again.table.document("new")?.creationRevision == 3_001)
        #expect(try await memory.list(Self.namespace).map(\.key.name) == ["revision"])
    }

    @Test("an older server refuses a collection in log format, and does not treat it as empty")
    func olderServer() async throws {
        let memory = MemoryStore()
        var keeper = try await RetainedLog(memory)
        keeper.apply(.add("a"))
        await keeper.write()
        await #expect(throws: (any Error).self) {
            _ = try await LegacyStoredCollection(Self.namespace, in: memory).contents()
        }
    }
}
