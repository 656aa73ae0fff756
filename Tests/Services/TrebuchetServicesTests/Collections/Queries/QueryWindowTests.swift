import Platform
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// Compares incrementally maintained results with computed ones.
@Suite struct QueryWindowTests {
    private static let readable: @Sendable (Document) -> Bool = { $0.fields["secret"] == nil }

    private struct Live {
        let query: CollectionQuery
        let list: MatchList
        var window: QueryWindow
        var result = QueryResult()

        init(_ query: CollectionQuery, _ list: MatchList, bytes: Int) throws {
            self.query = query
            self.list = list
            window = try QueryWindow(query, maximumBytes: bytes)
        }

        mutating func begin() {
            result.documents = KeyedCollection(window.computeFirstWindow(in: list.rows))
            (result.count, result.hasMore) = (window.matches, window.hasMore)
        }
    }

    private static func naive(_ query: CollectionQuery, _ documents: [DocumentID: Document], bytes: Int) throws
        -> QueryResult
    {
        let all = documents.values.filter { query.matches($0) && readable($0) }.sorted(by: query.precedes)
        let cursor = try query.start
        let behind = all.filter { cursor?.precedes($0, in: query.order) ?? true }
        var (shown, used): ([Document], Int) = ([], 0)
        for document in behind.prefix(query.limit ?? .max) {
            let size = DocumentRow(document).byteCount
            guard shown.isEmpty || used + size <= bytes else { break }
            used += size
            shown.append(document)
        }
        var result = QueryResult()
        result.documents = KeyedCollection(shown)
        result.count = query.includesCount ? all.count : nil
        result.hasMore = behind.count > shown.count
        return result
    }

    private static func queries(_ documents: [Document]) -> [CollectionQuery] {
        let cursor = QueryCursor(behind: .todo("d3", ["n": .integer(4)], created: 3), in: [.ascending("n")]).text
        return [
            .all, CollectionQuery(includesCount: true),
            CollectionQuery(where: [.field("n", isLessThan: .integer(6))]),
            CollectionQuery(
                where: [.field("n", isAtLeast: .integer(3)), .field("n", isLessThan: .integer(5))], includesCount: true),
            CollectionQuery(order: [.descending("n")], limit: 4),
            CollectionQuery(order: [.descending("n")], limit: 2, includesCount: true),
            CollectionQuery(
                where: [.field("done", equals: .bool(true))], order: [.ascending("t"), .descending("n")], limit: 3),
            CollectionQuery(where: [.field("t", equals: .null)], limit: 0, includesCount: true),
            CollectionQuery(order: [.ascending("n")], limit: 1),
            CollectionQuery(order: [.ascending("n")], limit: 3, after: cursor, includesCount: true),
            CollectionQuery(
                where: [.field("t", isIn: [.string("a"), .string("b")])], order: [.ascending("n")], after: cursor),
            CollectionQuery(where: [.field("t", hasPrefix: "b")]),
            CollectionQuery(where: [.field("tags", contains: .string("x"))]),
            CollectionQuery(where: [
                .any(
                    [.field("t", equals: .string("c")), .field("n", isLessThan: .integer(5))],
                    [.field("n", equals: .integer(9))])
            ]),
            CollectionQuery(where: [
                .any([.field("n", isGreaterThan: .integer(8))], [.field("n", isLessThan: .integer(2))])
            ]),
            CollectionQuery(
                where: [.any([.field("done", doesNotEqual: .bool(true))], [.field("n", equals: .integer(9))])], limit: 5
            ),
            CollectionQuery(where: [.field("inner.v", equals: .integer(1))], order: [.descending("inner.v")]),
            CollectionQuery(where: [
                .field("$revision", isGreaterThan: .integer(100)), .field("$creator", equals: .string("ada")),
            ]),
        ]
    }

    @Test(
        "an incrementally maintained result equals the computed one, and changes only when that changes",
        arguments: UInt64(1)...20)
    func model(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        var documents: [DocumentID: Document] = [:]
        for number in 0..<10 {
            documents[DocumentID("d\(number)")] = Self.changed(
                .todo(DocumentID("d\(number)"), created: number), 0, &random)
        }
        let bytes = seed.isMultiple(of: 2) ? 1_200 : 1 << 20
        var lists = MatchLists(documents.values)
        var live = try Self.queries([]).map { query in
            let list = lists.acquireList(MatchList.Key(query.canonical, for: nil), mayRead: Self.readable)
            return try Live(query, list, bytes: bytes)
        }
        var slice = ScanSlice()
        for index in live.indices {
            while !lists.continueScan(live[index].list, &slice) {}
            live[index].begin()
        }
        for step in 1...300 {
            let id: DocumentID = "d\(Int.random(in: 0..<15, using: &random))"
            if documents[id] != nil, Int.random(in: 0..<4, using: &random) == 0 {
                documents[id] = nil
            } else {
                documents[id] = Self.changed(documents[id] ?? .todo(id, created: 100 + step), step, &random)
            }
            let before = live.map(\.result)
            var changed: Set<Int> = []
            lists.apply(DocumentChange(id: id, after: documents[id])) { list, change in
                for index in live.indices where live[index].list === list {
                    guard let change = live[index].window.apply(change, in: list.rows) else { continue }
                    changed.insert(index)
                    live[index].result.apply(change, revision: 0)
                }
            }
            for index in live.indices {
                let naive = try Self.naive(live[index].query, documents, bytes: bytes)
                #expect(live[index].result == naive, "seed \(seed), step \(step), query \(index)")
                // A document with unchanged visible fields is a change all the same: it has a new revision.
                #expect(
                    changed.contains(index) == (before[index] != naive), "seed \(seed), step \(step), query \(index)")
            }
        }
    }

    private static func changed(_ document: Document, _ step: Int, _ random: inout RandomSource) -> Document {
        var fields = document.fields
        let number = Int64.random(in: 0..<11, using: &random)
        fields["n"] = number == 10 ? nil : number.isMultiple(of: 3) ? .number(Double(number)) : .integer(number)
        fields["t"] = ["a", "b", "c", nil].randomElement(using: &random)!.map { .string($0) }
        fields["done"] = .bool(Bool.random(using: &random))
        fields["tags"] = Bool.random(using: &random) ? .array([.string("x"), .string("y")]) : .array([])
        fields["inner"] = .object(["v": .integer(Int64.random(in: 0..<3, using: &random))])
        fields["secret"] = Int.random(in: 0..<6, using: &random) == 0 ? .bool(true) : nil
        fields["long"] = .string(String(repeating: "x", count: Int.random(in: 0..<200, using: &random)))
        return Document(
            id: document.id, fields: fields, creator: document.creationRevision.isMultiple(of: 2) ? "ada" : nil,
            created: document.creationRevision, revision: step)
    }

    @Test(
        "a write during a scan in parts is in the list once", arguments: UInt64(1)...20
    )
    func scanned(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        var documents: [DocumentID: Document] = [:]
        for number in 0..<200 {
            documents[DocumentID("d\(number)")] = Self.changed(
                .todo(DocumentID("d\(number)"), created: number), 0, &random)
        }
        var lists = MatchLists(documents.values)
        func write(_ step: Int) {
            let id: DocumentID = "d\(Int.random(in: 0..<260, using: &random))"
            if documents[id] != nil, Bool.random(using: &random) {
                documents[id] = nil
            } else {
                documents[id] = Self.changed(documents[id] ?? .todo(id, created: 1_000 + step), step, &random)
            }
            lists.apply(DocumentChange(id: id, after: documents[id])) { _, _ in }
        }
        var step = 0
        // The second condition on a field creates an index, and the third one uses it.
        let texts = ["a", "b", "c"]
        for (number, text) in texts.enumerated() {
            let query = CollectionQuery(where: [.field("t", equals: .string(text))], order: [.ascending("n")])
            let key = MatchList.Key(query, for: nil)
            while true {
                var slice = ScanSlice(steps: 3)
                if lists.prepare(key, mayRead: Self.readable, &slice) { break }
                step += 1
                write(step)
            }
            let list = lists.acquireList(key, mayRead: Self.readable)
            while true {
                var slice = ScanSlice(steps: 3)
                if lists.continueScan(list, &slice) { break }
                step += 1
                write(step)
            }
            #expect(lists.fieldCount == (number == 0 ? 0 : 1))
            let naive = documents.values.filter { query.matches($0) && Self.readable($0) }.sorted(by: query.precedes)
            #expect(list.rows.rows(from: 0).map(\.document) == naive, "seed \(seed), \(text)")
        }
        #expect(step > 100)
    }

    @Test("an index of a field is removed with the last list that could use it")
    func fields() {
        var lists = MatchLists(
            (0..<10).map { Document.todo(DocumentID("\($0)"), ["owner": .integer(Int64($0))], created: $0) })
        var made: [MatchList] = []
        for owner in 0..<3 {
            let key = MatchList.Key(CollectionQuery(where: [.field("owner", equals: .integer(Int64(owner)))]), for: nil)
            var slice = ScanSlice()
            #expect(lists.prepare(key, mayRead: { _ in true }, &slice))
            let list = lists.acquireList(key) { _ in true }
            #expect(lists.continueScan(list, &slice) && list.rows.count == 1)
            made.append(list)
        }
        #expect(lists.fieldCount == 1 && lists.count == 3)
        for list in made {
            #expect(lists.fieldCount == 1)
            let left = lists.release(list)
            lists.removeIfUnused(list.number, since: left ?? 0)
        }
        #expect(lists.fieldCount == 0 && lists.count == 0)
    }
}
