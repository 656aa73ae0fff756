import SharedState
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// The cost of many simultaneous changes for readers.
@Suite(.timeLimit(.minutes(5))) struct QueryShowingTests {
    private static let client = "0123456789abcdef"

    @Test("changes are applied to lists in parts, one in each turn, and later ones are queued behind them")
    func parts() async throws {
        try await CollectionTestEnvironment.run { environment in
            let queries = OpenQueries(host: environment.host, documents: [])
            let list = queries.acquireList(MatchList.Key(.all, for: nil)) { _ in true }
            _ = queries.continueScan(list)
            func changes(_ ids: ClosedRange<Int>) -> [DocumentChange] {
                ids.map { DocumentChange(id: "\($0)", after: .todo("\($0)", created: $0)) }
            }
            queries.recordChanges([], revision: 0)
            #expect(queries.continueShowing())
            queries.recordChanges(changes(1...3), revision: 3)
            #expect(queries.isShowing && !queries.isEmpty)
            // A turn that is over immediately.
            for count in 1...2 {
                #expect(!queries.continueShowing(ScanSlice(steps: 1)))
                #expect(list.rows.count == count)
            }
            queries.recordChanges([DocumentChange(id: "1", after: nil)], revision: 4)
            #expect(!queries.continueShowing(ScanSlice(steps: 1)))
            #expect(list.rows.count == 3, "in the order of the changes")
            while !queries.continueShowing(ScanSlice(steps: 1)) {}
            #expect(list.rows.count == 2 && !queries.isShowing)
        }
    }

    @Test("one task updates the results of a collection, however many calls ask for it")
    func oneTask() async throws {
        try await CollectionTestEnvironment.run(reactors: 1) { world in
            let guest = world.guest("ada")
            try await guest.client.connect()
            _ = try await guest.collection().commit([.add("a")], from: "0123456789abcdef")
            let local = try #require(world.host.live.first { $0.name == "todos" }?.part)
            let counts = try #require(
                await local.whenLocal { collection in
                    let queries = collection.queries
                    queries.reading += 1
                    defer { queries.reading -= 1 }
                    for number in 0..<40 {
                        let query = CollectionQuery(order: [.ascending("f\(number)")])
                        let list = queries.acquireList(MatchList.Key(query, for: nil)) { _ in true }
                        while !queries.continueScan(list) {}
                    }
                    let changes = (0..<4_000).map { number in
                        DocumentChange(id: "\(number)", after: .todo(DocumentID("\(number)"), created: number))
                    }
                    queries.recordChanges(changes, revision: collection.revision)
                    var counts = [queries.updateTurns]
                    for _ in 0..<100 { collection.applyExpired() }
                    counts.append(queries.updateTurns)
                    for _ in 0..<10 {
                        await Task.yield()
                        counts.append(queries.updateTurns)
                    }
                    await collection.updateResults(for: [nil])
                    #expect(!queries.isShowing)
                    return counts
                })
            let turns = zip(counts, counts.dropFirst()).map { $1 - $0 }
            // Not one for each call. On a busy machine the one task has several turns until this one is resumed.
            #expect(turns[0] <= 2 && turns.allSatisfy { $0 < 100 }, "\(turns)")
            #expect(turns.contains { $0 > 0 })
        }
    }

    @Test("a reader sees all changes of a write or none, however long it takes")
    func together() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("bob"))
            try await ada.client.connect()
            let writer = try ada.collection()
            // Each write affects all of them, so that updating them takes longer than a turn.
            for number in 0..<40 {
                _ = try await writer.open(
                    EncodedJSON(CollectionQuery(order: [.ascending("f\(number)")], limit: 1).value))
            }
            let todos = bob.todos(order: [.ascending("priority")], limit: 1_000)
            await shows(todos) { !$0.isLoading }
            let counts = Task {
                var counts: Set<Int> = []
                for await value in todos.updates {
                    counts.insert(value.items.count)
                    if value.items.count == 900 { break }
                }
                return counts
            }
            let mutations = (0..<9).map { part in
                DocumentMutation(
                    number: part + 1,
                    writes: (0..<100).map { number in
                        let id = DocumentID("\(part)-\(number)")
                        let fields: JSONObject = [
                            "title": .string("t"), "isDone": .bool(false), "tags": .array([]),
                            "priority": .integer(Int64(number * 10 + part)),
                        ]
                        return DocumentWrite(.add(id, fields))
                    })
            }
            let outcomes = try await writer.commit(mutations, from: "0123456789abcdef")
            #expect(outcomes.allSatisfy { $0.error == nil })
            #expect(await counts.value.isSubset(of: [0, 900]))
            var priorities: [Int] = []
            for number in 0..<100 { priorities += (0..<9).map { number * 10 + $0 } }
            #expect(todos.wrappedValue.items.map(\.priority) == priorities)
        }
    }

    @Test("an administrator's removal of all documents proceeds in parts, and readers see the rest")
    func removal() async throws {
        try await CollectionTestEnvironment.run { environment in
            let ada = environment.guest("ada")
            let todos = ada.todos(limit: 10)
            await shows(todos) { !$0.isLoading }
            let documents = (0..<1_200).map { number in
                let fields: JSONObject = [
                    "title": .string("t"), "isDone": .bool(false), "tags": .array([]), "priority": .integer(1),
                ]
                return Document.todo(DocumentID("\(number)"), fields, created: number)
            }
            let restored = try await environment.host.restore(documents, in: "todos", replaces: false)
            #expect(restored.created == 1_200)
            await shows(todos) { $0.items.count == 10 }
            let removed = try await environment.host.removeOldest(2_000, from: "todos")
            #expect(removed == 1_200)
            await shows(todos) { $0.items.isEmpty }
            let left = try await environment.host.documents(of: "todos")
            #expect(left.isEmpty)
        }
    }

    @Test(
        "a change is applied in parts to many cursors of one list, and to queries with many fields",
        arguments: [true, false])
    func queries(haveCursors: Bool) async throws {
        try await CollectionTestEnvironment.run(reactors: 1) { environment in
            let ada = environment.guest("ada")
            try await ada.client.connect()
            let collection = try ada.collection()
            let writes = (0..<60).map { DocumentWrite(.add(DocumentID("\($0)"), ["n": .integer(Int64($0))])) }
            _ = try await collection.commit([DocumentMutation(number: 1, writes: writes)], from: Self.client)
            let order = [QueryOrder.ascending("n")]
            for number in 0..<50 {
                let document = Document.todo("\(number)", ["n": .integer(Int64(number))])
                let any = QueryCondition.any(of: (0..<30).map { .field("f\(number * 30 + $0)", equals: .integer(1)) })
                let query =
                    haveCursors
                    ? CollectionQuery(order: order, after: QueryCursor(behind: document, in: order).text)
                    : CollectionQuery(where: [any])
                _ = try await collection.open(EncodedJSON(query.value))
            }
            let local = try #require(environment.host.live.first { $0.name == "todos" }?.part)
            let parts = await local.whenLocal { collection in
                let queries = collection.queries
                let change = DocumentChange(id: "0", after: .todo("0", ["n": .integer(100)]))
                queries.recordChanges([change], revision: collection.revision + 1)
                var parts = 1
                while !queries.continueShowing(ScanSlice(steps: 1)) { parts += 1 }
                return parts
            }
            // Each query is a part to apply the change to, and one to publish; each field is a part before and after the change.
            #expect(try #require(parts) >= (haveCursors ? 2 * 50 : 2 * 50 * 30))
        }
    }

    @Test("a call that closes a query uses a time slice, as all calls that decode queries")
    func closing() async throws {
        try await CollectionTestEnvironment.run(reactors: 1) { environment in
            let ada = environment.guest("ada")
            try await ada.client.connect()
            let collection = try ada.collection()
            let query = EncodedJSON(CollectionQuery(where: [.field("n", equals: .integer(1))]).value)
            _ = try await collection.open(query)
            let local = try #require(environment.host.live.first { $0.name == "todos" }?.part)
            let before = await local.whenLocal { $0.turns.sliceCount } ?? 0
            try await collection.close(query)
            await #expect(throws: CollectionError.self) { try await collection.close(EncodedJSON(.string("none"))) }
            let after = await local.whenLocal { $0.turns.sliceCount } ?? 0
            #expect(after >= before + 2)
            let left = await local.whenLocal { $0.queries.callers.count }
            #expect(left == 0)
        }
    }
}
