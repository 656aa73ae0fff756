import Synchronization
import Testing
import Trebuchet

@testable import TrebuchetServices

/// The work for a query does not depend on the content of documents that its reader may not read.
@Suite struct HiddenMatchTests {
    private static let cities = ["Oslo", "Bergen"]

    /// Ten readable documents in Bergen among a hundred hidden ones in Oslo.
    private static let documents = (0..<110).map { number in
        let isReadable = number % 11 == 0
        return Document(
            id: DocumentID("\(number)"),
            fields: ["id": .string("\(number)"), "city": .string(isReadable ? "Bergen" : "Oslo")],
            creator: isReadable ? "eve" : "ada", created: number)
    }

    private static func key(_ query: CollectionQuery) throws -> MatchList.Key {
        let rules = ClosureRules(write: { _, _, _ in }) { principal, document, _ in document.creator == principal?.id }
        let reader = try #require(CollectionReader(Principal(id: "eve"), in: "notes", rules, number: 1))
        return MatchList.Key(query, for: reader)
    }

    @Test("conditions are evaluated for readable documents only, in a scan and after a change")
    func evaluations() throws {
        var lists = MatchLists(Self.documents)
        for city in Self.cities {
            let key = try Self.key(CollectionQuery(where: [.any(of: [.field("city", equals: .string(city))])]))
            let list = lists.acquireList(key) { $0.creator == "eve" }
            var slice = ScanSlice()
            while !lists.continueScan(list, &slice) {}
            #expect(list.evaluations == 10)
            let hidden = Document(
                id: "1", fields: ["id": .string("1"), "city": .string(city)], creator: "ada", created: 1, revision: 500)
            lists.apply(DocumentChange(id: "1", after: hidden)) { _, _ in Issue.record("a hidden document was shown") }
            #expect(list.evaluations == 10)
        }
    }

    @Test("an index of a field has no candidates that its reader may not read")
    func candidates() throws {
        var lists = MatchLists(Self.documents)
        let checks = Mutex(0)
        let fields = (0..<3).map { "n\($0)" }
        // Two lists need the index before the third one uses it.
        var counts: [Int] = []
        for city in ["a", "b"] + Self.cities {
            let conditions =
                [QueryCondition.field("city", equals: .string(city))] + fields.map { .field($0, equals: .null) }
            let key = try Self.key(CollectionQuery(where: conditions))
            let mayRead: @Sendable (Document) -> Bool = { document in
                checks.withLock { $0 += 1 }
                return document.creator == "eve"
            }
            var slice = ScanSlice()
            while !lists.prepare(key, mayRead: mayRead, &slice) {}
            checks.withLock { $0 = 0 }
            let list = lists.acquireList(key, mayRead: mayRead)
            while !lists.continueScan(list, &slice) {}
            counts.append(checks.withLock { $0 })
            #expect(list.rows.count == (city == "Bergen" ? 10 : 0))
        }
        #expect(counts == [110, 0, 0, 10], "\(lists.fieldCount)")
    }
}
