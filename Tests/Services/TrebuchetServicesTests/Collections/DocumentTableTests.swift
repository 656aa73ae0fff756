import Platform
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite struct DocumentTableTests {
    private static let client = "0123456789abcdef"

    /// A table that numbers the mutations of its clients.
    private struct Bench {
        var table: DocumentTable
        private var numbers: [String: Int] = [:]

        init(_ limits: CollectionLimits = CollectionLimits()) { table = DocumentTable(limits: limits) }

        @discardableResult
        mutating func perform(
            _ command: DocumentCommand, from client: String = DocumentTableTests.client, as creator: String? = nil,
            may: Bool = true
        ) -> CollectionError? {
            numbers[client, default: 0] += 1
            let mutation = DocumentMutation(number: numbers[client]!, command: command)
            return table.apply(mutation, from: client, creator: creator, at: 0) { _, _ in may }.error
        }

        mutating func write() -> [DocumentChange] { table.beginWrite().map { table.endWrite($0) } ?? [] }
    }

    @Test("a loaded collection never reuses a revision, even if the store has lost some")
    func revisions() {
        let moment = 1_795_000_000_000
        var contents = CollectionContents()
        func loaded(at now: Int) -> Int { DocumentTable(limits: CollectionLimits(), contents, at: now).revision }
        let first = loaded(at: moment)
        #expect(first > 1_000_000 && loaded(at: moment + 1_000) - first == 64_000, "it may have lost its revisions")
        #expect(loaded(at: 0) == 0)
        contents.revision = 40
        #expect(loaded(at: moment) == first)
        #expect(loaded(at: 0) == 40, "the clock may be wrong")
        contents.revision = first + 1_000_000
        #expect(loaded(at: moment + 1_000) == contents.revision)
        let years = 4_000 * 365 * 86_400_000
        #expect(loaded(at: moment + years) < 1 << 53)
    }

    @Test("commands have their outcome for existing and missing documents")
    func commands() {
        let there = DocumentCommand.add("a", ["title": .string("Milk"), "tags": .array([.string("x")])])
        let table: [(DocumentCommand, CollectionError?, JSONObject?)] = [
            (.add("a"), .alreadyExists(id: "a"), nil),
            (.update(id: "a", fields: ["title": .string("Tea")]), nil, ["title": .string("Tea")]),
            (.update(id: "a", fields: ["title": .null]), nil, ["title": .null]),
            (.update(id: "b", fields: [:]), .notFound(id: "b"), nil),
            (.update(id: "a", fields: ["id": .string("b")]), .invalidDocument("its member 'id' is not 'a'"), nil),
            (.link(id: "a", field: "tags", target: .string("y")), nil, ["tags": .array([.string("x"), .string("y")])]),
            (.link(id: "a", field: "tags", target: .string("x")), nil, ["tags": .array([.string("x")])]),
            (.unlink(id: "a", field: "tags", target: .string("x")), nil, ["tags": .array([])]),
            (.link(id: "b", field: "tags", target: .null), .notFound(id: "b"), nil),
            (.unlink(id: "b", field: "tags", target: .null), .notFound(id: "b"), nil),
            (.delete(id: "b"), nil, nil),
            (.create(id: "b", fields: [:]), .invalidDocument("its member 'id' is not 'b'"), nil),
        ]
        for (command, error, fields) in table {
            var bench = Bench()
            bench.perform(there)
            #expect(bench.perform(command) == error, "\(command)")
            for (name, value) in fields ?? [:] {
                #expect(bench.table.document("a")?.fields[name] ?? .null == value, "\(command)")
            }
        }
        var bench = Bench()
        bench.perform(there)
        bench.perform(.delete(id: "a"))
        #expect(bench.table.document("a") == nil)
        #expect(bench.perform(there) == nil)
    }

    @Test("the last of two writes to a field wins, and other fields are kept")
    func lastWriteWins() {
        var bench = Bench()
        bench.perform(.add("a", ["title": .string("one"), "note": .string("n")]))
        bench.perform(.update(id: "a", fields: ["title": .string("two")]), from: "another client 1")
        bench.perform(.update(id: "a", fields: ["title": .string("three"), "done": .bool(true)]))
        let fields = bench.table.document("a")?.fields
        #expect(
            fields == [
                "id": .string("a"), "title": .string("three"), "note": .string("n"), "done": .bool(true),
            ])
    }

    @Test("an outcome is not recorded when the data that it depends on is discarded")
    func discardedOutcomes() {
        var table = DocumentTable(limits: CollectionLimits())
        func apply(_ number: Int, _ command: DocumentCommand, from client: String) -> MutationOutcome {
            table.apply(DocumentMutation(number: number, command: command), from: client, creator: nil, at: 0) { _, _ in
                true
            }
        }
        let (ada, bob) = (Self.client, "another client 1")
        _ = apply(1, .add("a", ["n": .integer(1)]), from: ada)
        _ = table.beginWrite().map { table.endWrite($0) }
        _ = apply(2, .update(id: "a", fields: ["n": .integer(2)]), from: ada)
        _ = apply(3, .add("b"), from: ada)
        // They change nothing, and are answered when the data they depend on is in the store.
        let batch = table.beginWrite()
        #expect(apply(1, .update(id: "a", fields: ["n": .integer(2)]), from: bob).error == nil)
        #expect(apply(2, .add("b"), from: bob).error == .alreadyExists(id: "b"))
        #expect(batch != nil)
        table.discardUnwritten()
        // The client repeats them.
        #expect(apply(1, .update(id: "a", fields: ["n": .integer(2)]), from: bob).error == nil)
        #expect(table.document("a")?.fields["n"] == .integer(2))
        #expect(apply(2, .add("b"), from: bob).error == nil)
        #expect(table.document("b") != nil)
        _ = table.beginWrite().map { table.endWrite($0) }
        #expect(apply(2, .add("b"), from: bob).error == nil)
        // A written outcome stays recorded, whatever fails later.
        #expect(apply(3, .add("b"), from: bob).error == .alreadyExists(id: "b"))
        _ = apply(4, .add("c"), from: ada)
        table.discardUnwritten()
        #expect(apply(2, .add("b"), from: bob).error == nil)
    }

    @Test("expired documents are deleted from the store, even after a failure")
    func expiryFails() {
        var table = DocumentTable(limits: CollectionLimits())
        let mutation = DocumentMutation(
            number: 1, command: .create(id: "a", fields: ["id": .string("a")], expiresIn: .seconds(1)))
        _ = table.apply(mutation, from: Self.client, creator: nil, at: 0) { _, _ in true }
        _ = table.beginWrite().map { table.endWrite($0) }
        _ = table.expire(at: 5_000, limit: 10)
        #expect(table.beginWrite()?.documents.keys.map(\.text) == ["a"])
        table.discardUnwritten()
        // Not immediately: the store fails.
        #expect(!table.hasUnwritten)
        let next = DocumentMutation(number: 2, command: .add("b"))
        _ = table.apply(next, from: Self.client, creator: nil, at: 5_000) { _, _ in true }
        #expect(table.beginWrite()?.documents.keys.map(\.text).sorted() == ["a", "b"])
    }

    @Test("a repeated mutation is not executed again, and has its first outcome")
    func exactlyOnce() {
        var table = DocumentTable(limits: CollectionLimits())
        func apply(_ number: Int, _ command: DocumentCommand) -> MutationOutcome {
            table.apply(DocumentMutation(number: number, command: command), from: Self.client, creator: nil, at: 0) {
                _, _ in
                true
            }
        }
        let first = apply(1, .add("a"))
        let refused = apply(2, .add("a"))
        #expect(first.error == nil && refused.error == .alreadyExists(id: "a"))
        let deleted = apply(3, .delete(id: "a"))
        #expect(apply(1, .add("a")) == first)
        #expect(apply(2, .add("a")) == refused)
        #expect(apply(3, .delete(id: "a")) == deleted)
        #expect(table.document("a") == nil)
        for number in 4...40 { _ = apply(number, .add("\(number)")) }
        #expect(apply(1, .add("a")).error == .outdated)
        #expect(apply(9, .add("9")).error == nil)
        #expect(apply(50, .add("50")).error == nil, "numbers may be skipped")
    }

    @Test("only written data is shown, and a failed write can be repeated")
    func writing() {
        var bench = Bench()
        bench.perform(.add("a"))
        #expect(bench.table.documents.isEmpty)
        #expect(bench.write().map(\.id) == ["a"])
        #expect(bench.table.documents["a"] != nil)

        let batch = DocumentMutation(number: 2, command: .add("b"))
        let may: (CollectionAction, Document) -> Bool = { _, _ in true }
        var table = bench.table
        #expect(table.apply(batch, from: Self.client, creator: nil, at: 0, may: may).error == nil)
        let written = table.beginWrite()
        #expect(written?.documents.keys.sorted() == ["b"])
        _ = table.apply(
            DocumentMutation(number: 3, command: .delete(id: "a")), from: Self.client, creator: nil, at: 0, may: may)
        table.discardUnwritten()
        #expect(table.document("a") != nil && table.document("b") == nil && !table.hasUnwritten)
        let again = table.apply(batch, from: Self.client, creator: nil, at: 0, may: may)
        #expect(again.error == nil && table.document("b") != nil, "the mutation was not executed before")
    }

    @Test("an outcome without a change stays recorded when unwritten data is discarded")
    func rememberedRefusal() {
        var bench = Bench()
        let mutation = DocumentMutation(number: 1, command: .update(id: "a", fields: ["v": .bool(true)]))
        let refused = bench.table.apply(mutation, from: "other", creator: nil, at: 0) { _, _ in true }
        #expect(refused.error == .notFound(id: "a"))
        bench.table.discardUnwritten()
        #expect(bench.perform(.add("a")) == nil)
        #expect(bench.table.apply(mutation, from: "other", creator: nil, at: 0) { _, _ in true } == refused)
    }

    @Test("discarded data takes no capacity, however often this happens")
    func discardedRoom() {
        var limits = CollectionLimits()
        limits.collectionBytes = 350
        var bench = Bench(limits)
        let text = JSONValue.string(String(repeating: "x", count: 100))
        for round in 0..<5 {
            #expect(bench.perform(.add("a", ["t": text])) == nil, "round \(round)")
            #expect(bench.perform(.add("b", ["t": text])) == .collectionTooLarge(limit: 350), "round \(round)")
            bench.table.discardUnwritten()
        }
        #expect(bench.table.isEmpty)
    }

    @Test("evicted clients are deleted from the store too")
    func forgottenClients() {
        var limits = CollectionLimits()
        limits.deduplicatedClients = 10
        var bench = Bench(limits)
        var stored: Set<ByteText> = []
        for number in 0..<50 {
            bench.perform(.add("d\(number)"), from: "client number \(number)")
            guard let batch = bench.table.beginWrite() else { continue }
            for (client, change) in batch.clients {
                if change.window == nil { stored.remove(client) } else { stored.insert(client) }
            }
            _ = bench.table.endWrite(batch)
        }
        #expect(stored.count == bench.table.clientCount)
        #expect(stored.count <= 10)
    }

    @Test("changes during the writing of a batch are in the next batch")
    func meanwhile() {
        var bench = Bench()
        bench.perform(.add("a"))
        let batch = bench.table.beginWrite()!
        bench.perform(.update(id: "a", fields: ["x": .integer(1)]))
        #expect(bench.table.endWrite(batch).map { $0.after?.fields["x"] } == [nil])
        #expect(bench.table.hasUnwritten)
        #expect(bench.write().map { $0.after?.fields["x"] } == [.integer(1)])
        #expect(!bench.table.hasUnwritten)
    }

    @Test("each limit has a specific error")
    func limits() {
        var limits = CollectionLimits()
        limits.documentBytes = 100
        limits.documentsPerCollection = 2
        limits.collectionBytes = 300
        limits.deduplicatedClients = 10
        var bench = Bench(limits)
        let text = JSONValue.string(String(repeating: "x", count: 100))
        guard case .documentTooLarge("a", _, 100)? = bench.perform(.add("a", ["t": text])) else {
            Issue.record("a document of more than 100 bytes")
            return
        }
        let half = JSONValue.string(String(repeating: "x", count: 50))
        #expect(bench.perform(.add("a", ["t": half])) == nil)
        #expect(bench.perform(.add("b", ["t": half])) == nil)
        #expect(bench.perform(.add("c")) == .tooManyDocuments(limit: 2))
        #expect(
            bench.perform(.update(id: "a", fields: ["u": .string("12345678901234567890")]))
                == .collectionTooLarge(limit: 300))
        #expect(bench.perform(.update(id: "a", fields: [:]), may: false) == .notFound(id: "a"))
        #expect(bench.perform(.delete(id: "a"), may: false) == nil)
        #expect(bench.table.document("a") != nil)
        #expect(bench.perform(.delete(id: "a")) == nil)
        #expect(bench.perform(.add("c")) == nil)
        for value in [true, false, true] {
            #expect(bench.perform(.update(id: "c", fields: ["v": .bool(value)])) == nil)
        }
        #expect(bench.perform(.add("d")) == .tooManyDocuments(limit: 2), "a changed document does not count again")
        for client in 0..<100 { bench.perform(.update(id: "b", fields: [:]), from: "client number \(client)") }
        #expect(bench.table.clientCount <= 10)
    }

    @Test(
        "a caller without read access gets the outcomes for a missing document, whatever else the rules allow",
        arguments: [
            .update(id: "a", fields: ["n": .integer(2)]), .merge(id: "a", fields: ["n": .integer(2)]),
            .increment(id: "a", field: "text", by: .integer(1)),
            .link(id: "a", field: "n", target: .string("b")),
            .unlink(id: "a", field: "n", target: .string("b")), .expire(id: "a", expiresIn: .seconds(1)),
            .delete(id: "a"), .check(id: "a"),
        ] as [DocumentCommand])
    func hidden(command: DocumentCommand) {
        let conditions: [WriteCondition?] = [
            nil, .absent, .revision(1), .field("n", equals: .integer(1)), .field("n", equals: .integer(3)),
        ]
        for condition in conditions {
            // Rules that refuse everything, closures with a reason, and rules that allow everything except reading.
            for (isRefused, knowsWhy) in [(true, false), (true, true), (false, true)] {
                func error(_ isThere: Bool) -> CollectionError? {
                    var bench = Bench()
                    if isThere { bench.perform(.add("a", ["n": .integer(1), "text": .string("x")])) }
                    let before = bench.table.document("a")
                    let mutation = DocumentMutation(number: 1, writes: [DocumentWrite(command, if: condition)])
                    let outcome = bench.table.apply(
                        mutation, from: "another client", creator: nil, at: 0,
                        check: !knowsWhy
                            ? nil : { change throws(CollectionError) in throw change.forbidden("it is a secret") },
                        may: { action, _ in !isRefused && action != .read })
                    #expect(bench.table.document("a") == before)
                    return outcome.error
                }
                #expect(error(true) == error(false), "\(command) if \(String(describing: condition))")
            }
        }
    }

    @Test("a failed transaction leaves everything unchanged, including the counters, and names the failed command")
    func transactions() {
        var limits = CollectionLimits()
        limits.documentsPerCollection = 3
        var bench = Bench(limits)
        bench.perform(.add("a", ["n": .integer(1)]))
        bench.perform(.create(id: "b", fields: ["id": .string("b")], expiresIn: .seconds(1)))
        _ = bench.write()
        let before = (bench.table.revision, bench.table.document("a"), bench.table.document("b"))
        let attempts: [([DocumentWrite], CollectionError, Int)] = [
            (
                [
                    DocumentWrite(.update(id: "a", fields: ["n": .integer(2)])), DocumentWrite(.delete(id: "b")),
                    DocumentWrite(.add("c")), DocumentWrite(.add("c")),
                ], .alreadyExists(id: "c"), 3
            ),
            ([DocumentWrite(.add("c")), DocumentWrite(.add("d"))], .tooManyDocuments(limit: 3), 1),
            (
                [DocumentWrite(.expire(id: "b", expiresIn: nil)), DocumentWrite(.check(id: "a"), if: .revision(9))],
                .conditionFailed(id: "a", revision: 1, found: [:]), 1
            ),
        ]
        for (number, (writes, error, index)) in attempts.enumerated() {
            let outcome = bench.table.apply(
                DocumentMutation(number: number + 10, writes: writes), from: Self.client, creator: nil, at: 0
            ) { _, _ in true }
            #expect(outcome.error == error && outcome.index == index, "\(writes)")
            #expect(bench.table.revision == before.0 && !bench.table.hasUnwritten)
            #expect(bench.table.document("a") == before.1 && bench.table.document("b") == before.2)
            let next = bench.table.nextExpiry
            #expect(bench.table.document("c") == nil && next == 1_000)
        }
        let moved = DocumentMutation(
            number: 20,
            writes: [
                DocumentWrite(.delete(id: "b")), DocumentWrite(.add("c")), DocumentWrite(.add("d")),
                DocumentWrite(.check(id: "c")), DocumentWrite(.delete(id: "d"), if: .revision(5)),
            ])
        let outcome = bench.table.apply(moved, from: Self.client, creator: nil, at: 0) { _, _ in true }
        #expect(outcome.error == nil && outcome.revision == 6)
        #expect(bench.write().map(\.id) == ["b", "c", "d"])
        let none = bench.table.nextExpiry
        #expect(none == nil)
        #expect(bench.table.apply(moved, from: Self.client, creator: nil, at: 0) { _, _ in true } == outcome)
    }

    @Test("an expired document disappears immediately, and stays away if the store refuses the deletion")
    func expiry() {
        func create(_ id: DocumentID, _ seconds: Int) -> DocumentCommand {
            .create(id: id, fields: ["id": .string(id.text)], expiresIn: .seconds(seconds))
        }
        var bench = Bench()
        for number in 1...5 { bench.perform(create("\(number)", number)) }
        _ = bench.write()
        let more = [bench.table.expire(at: 3_000, limit: 2), bench.table.expire(at: 3_000, limit: 2)]
        #expect(more == [true, false])
        let gone = [bench.table.takeExpired(), bench.table.takeExpired()].map { $0.map(\.id) }
        #expect(gone == [["1", "2", "3"], []])
        let next = bench.table.nextExpiry
        #expect(bench.table.documents.count == 2 && next == 4_000)
        bench.table.discardUnwritten()
        #expect(bench.table.document("1") == nil && bench.table.document("4") != nil)
        // It was being written when it expired.
        bench.perform(.update(id: "4", fields: ["v": .bool(true)]))
        let batch = bench.table.beginWrite()!
        _ = bench.table.expire(at: 4_000, limit: 2)
        let shown = bench.table.endWrite(batch)
        #expect(Set(shown.map(\.id)) == ["1", "2", "3", "4"] && shown.allSatisfy { $0.after == nil })
        // The data written meanwhile is deleted with the next batch.
        let deleted = bench.write()
        #expect(deleted.map(\.id) == ["4"] && deleted.allSatisfy { $0.after == nil })
        #expect(!bench.table.hasUnwritten)
        // A command arrives before the timer.
        let again = bench.table.apply(
            DocumentMutation(number: 50, command: create("5", 1)), from: Self.client, creator: nil, at: 5_000
        ) { _, _ in true }
        #expect(again.error == nil && bench.table.document("5")?.expiryMilliseconds == 6_000)
        let last = bench.table.takeExpired().map(\.id)
        #expect(last == ["4", "5"])

        let documents = [
            Document(id: "x", fields: [:], expiresAt: 5_000), Document(id: "y", fields: [:], expiresAt: 5_001),
        ]
        let late = DocumentTable(
            limits: CollectionLimits(), CollectionContents(documents: DocumentMap(documents)), at: 5_000)
        #expect(late.documents.keys.map(\.text) == ["y"] && late.hasUnwritten, "the deletion must be written")
    }
}
