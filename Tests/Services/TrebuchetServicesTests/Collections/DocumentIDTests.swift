import SharedState
import Testing
import Trebuchet
import TrebuchetTesting
import TrebuchetWire

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@MainActor @Suite("Ids of documents, and their times", .timeLimit(.minutes(5))) struct DocumentIDTests {
    private static let secret = "0123456789abcdef"
    /// Two texts that are equal as Swift strings.
    private let composed: DocumentID = "caf\u{e9}"
    private let decomposed: DocumentID = "cafe\u{301}"

    private func mutations(_ commands: [DocumentCommand], from first: Int = 1) -> [DocumentMutation] {
        commands.enumerated().map { DocumentMutation(number: first + $0, command: $1) }
    }

    @Test("an id is compared by its bytes, and is plain text in JSON")
    func bytes() throws {
        #expect(composed != decomposed && composed.text == decomposed.text)
        #expect(Set([composed, decomposed, composed]).count == 2)
        #expect(decomposed < composed && !(composed < decomposed))
        #expect(try JSONValue(encoding: [composed]) == .array([.string("caf\u{e9}")]))
        #expect(try JSONValue.array([.string("a")]).decode([DocumentID].self) == ["a"])
    }

    @Test("a write to an id affects no document whose id has other bytes, before and after a restart")
    func forms() async throws {
        let store = MemoryStore()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest()
            try await guest.client.connect()
            let outcomes = try await guest.collection().commit(
                mutations([
                    .add(composed, ["v": .integer(1)]), .update(id: decomposed, fields: ["v": .integer(2)]),
                    .delete(id: decomposed), .add("other"), .add(decomposed, ["v": .integer(3)]), .delete(id: composed),
                    .add("\u{301}e"),
                ]), from: Self.secret)
            #expect(outcomes.map(\.error) == [nil, .notFound(id: decomposed.text), nil, nil, nil, nil, nil])
        }
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest()
            try await guest.client.connect()
            let outcomes = try await guest.collection().commit(
                mutations([
                    .update(id: composed, fields: ["v": .integer(4)]),
                    .update(id: decomposed, fields: ["v": .integer(4)]), .add("\u{301}e"),
                ]), from: "another client's")
            #expect(outcomes.map(\.error) == [.notFound(id: composed.text), nil, .alreadyExists(id: "\u{301}e")])
        }
    }

    @Test("clients whose secrets differ in bytes are separate")
    func secrets() {
        var table = DocumentTable(limits: CollectionLimits())
        for client in ["0123456789abcdef\u{e9}", "0123456789abcdefe\u{301}"] {
            let outcome = table.apply(
                DocumentMutation(number: 1, command: .add("\(client.utf8.count)")), from: client, creator: nil, at: 0
            ) { _, _ in true }
            #expect(outcome.error == nil)
        }
        #expect(table.document("18") != nil && table.document("19") != nil)
        #expect(table.clientCount == 2)
    }

    @Test("an app to which the ids of two documents are equal is shown one, with a report of the other")
    func shown() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest()
            try await guest.client.connect()
            let fields = try CollectionCommands.fields(of: Todo(id: ""))
            _ = try await guest.collection().commit(
                mutations([.add(composed, fields), .add(decomposed, fields)]), from: Self.secret)
            let todos = guest.todos()
            await shows(todos) { !$0.isLoading }
            #expect(todos.wrappedValue.items.count == 1)
            let other = UnreadableDocument(id: decomposed.text, reason: "its id decodes to the id of another document")
            #expect(todos.wrappedValue.unreadable == [other])
            #expect(todos.wrappedValue.readError as? CollectionError == other.error)
            // With either text the app refers to the document that is shown.
            try await todos.delete(decomposed.text)
            await shows(todos) { $0.readError == nil }
            #expect(todos.wrappedValue.items.map(\.id.utf8.count) == [decomposed.text.utf8.count])
        }
    }

    @Test("a document's creator is compared by the bytes of the name too")
    func creators() {
        let document = Document(id: "a", fields: [:], creator: "caf\u{e9}")
        let rules = CreatorRules()
        for (name, isAllowed) in [("caf\u{e9}", true), ("cafe\u{301}", false)] {
            #expect(rules.isAllowed(Principal(id: name), .update, document, in: "todos") == isAllowed)
        }
        #expect(!rules.isAllowed(nil, .delete, document, in: "todos"))
        #expect(rules.isAllowed(nil, .delete, Document(id: "a", fields: [:]), in: "todos"))
    }

    @Test(
        "documents have their times of creation and change, which decrease only when the clock is set back by more than a second, even after a restart"
    )
    func times() async throws {
        let store = MemoryStore()
        let time = ManualTime(1_000)
        func documents(_ environment: CollectionTestEnvironment, _ commands: [DocumentCommand], from: Int) async throws
            -> [String:
            [Int]]
        {
            let guest = environment.guest()
            try await guest.client.connect()
            _ = try await guest.collection().commit(mutations(commands, from: from), from: Self.secret)
            let ticket = try await guest.collection().open(.all)
            let view = try guest.client.resolve(CollectionView.self, id: ticket.view)
            var times: [String: [Int]] = [:]
            for await result in await view.observeResult() {
                for document in result.documents {
                    times[document.id.text] = [document.createdMilliseconds, document.updatedMilliseconds]
                }
                break
            }
            return times
        }
        try await CollectionTestEnvironment.run(store: store, clock: time.clock) { environment in
            let both = try await documents(environment, [.add("a"), .add("b")], from: 1)
            #expect(
                both == [
                    "a": [1_000, 1_000], "b": [1_000, 1_000],
                ])
            time.move(to: 2_000)
            let changed = try await documents(environment, [.update(id: "a", fields: ["v": .integer(1)])], from: 3)
            #expect(changed == ["a": [1_000, 2_000], "b": [1_000, 1_000]])
            time.move(to: 1_500)
            let later = try await documents(environment, [.update(id: "b", fields: ["v": .integer(1)])], from: 4)
            #expect(later == ["a": [1_000, 2_000], "b": [1_000, 2_000]])
            time.move(to: 3_000)
            _ = try await documents(environment, [.delete(id: "b")], from: 5)
        }
        time.move(to: 2_500)
        try await CollectionTestEnvironment.run(store: store, clock: time.clock) { environment in
            let restarted = try await documents(environment, [.add("c")], from: 6)
            #expect(restarted == ["a": [1_000, 2_000], "c": [3_000, 3_000]])
            // A temporarily wrong clock affects only the times written meanwhile.
            let year = 31_536_000_000
            time.move(to: year)
            let ahead = try await documents(
                environment, [.delete(id: "a"), .update(id: "c", fields: ["v": .integer(2)])], from: 7)
            #expect(ahead == ["c": [3_000, year]])
            time.move(to: 4_000)
            let back = try await documents(environment, [.add("d")], from: 9)
            #expect(back == ["c": [3_000, year], "d": [4_000, 4_000]])
            time.move(to: year)
            _ = try await documents(environment, [.delete(id: "d")], from: 10)
        }
        time.move(to: 5_000)
        try await CollectionTestEnvironment.run(store: store, clock: time.clock) { environment in
            let year = 31_536_000_000
            let restarted = try await documents(environment, [.add("e")], from: 11)
            #expect(restarted == ["c": [3_000, year], "e": [5_000, 5_000]])
        }
    }

    @Test("data of a server that recorded no times can be read, and its numbers continue")
    func olderStore() async throws {
        let store = MemoryStore()
        let document = #"{"id":"a","fields":{"id":"a","v":1},"created":3,"revision":4}"#
        try await store.write([
            .put(Array(document.utf8), StateKey("collection.todos", "document/a")),
            .put(Array("7".utf8), StateKey("collection.todos", "revision")),
        ])
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let table = try await StoredCollection("todos", in: store).load(CollectionLimits(), at: server, now: 0)
        #expect(table.revision == 7)
        #expect(
            table.document("a")
                == Document(id: "a", fields: ["id": .string("a"), "v": .integer(1)], created: 3, revision: 4))
    }

    @Test("names that are equal as Swift strings are separate in queries and subscriptions")
    func names() throws {
        let fields: JSONObject = [
            "\u{e9}": .integer(1), "e\u{301}": .integer(2),
            "o": .object(["\u{e9}": .integer(3), "e\u{301}": .integer(4)]),
        ]
        let document = Document.todo("a", fields)
        func sent<Value: Codable & Equatable>(_ value: Value) throws -> Value {
            try JSONValue(encoding: value).decode(Value.self)
        }
        let page = QueryPage(documents: [document], cursor: "x", count: 3, revision: 7)
        #expect(try sent(page) == page)
        #expect(try sent(page).documents.map(\.fields) == [document.fields])
        for result in [
            QueryResult(revision: 4, count: nil, hasMore: true, documents: [document]),
            QueryResult(revision: 4, count: 2, hasMore: false, documents: [document, .todo("b")]),
        ] {
            #expect(try sent(result) == result)
            #expect(try sent(result).documents.first?.fields == document.fields)
        }
    }
}
