import Platform
import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite("The index of queries") struct QueryIndexTests {
    private static let kinds: [(condition: QueryCondition, value: JSONValue)] = [
        (.field("a", equals: .integer(1)), .integer(1)), (.field("a", contains: .integer(1)), .array([.integer(1)])),
        (.field("a", isGreaterThan: .integer(0)), .integer(1)),
    ]

    /// Searches with a number of steps in each part, and calls `body` between the parts.
    private static func search(
        _ index: inout QueryIndex, for document: Document, steps: Int,
        between body: (inout QueryIndex) -> Void = { _ in }
    ) -> (found: Set<Int>, parts: Int) {
        var search = QueryIndex.Search(DocumentRow(document))
        var parts = 1
        while true {
            var slice = ScanSlice(steps: steps)
            if index.resume(&search, &slice) { return (search.found, parts) }
            parts += 1
            body(&index)
        }
    }

    @Test("removing a list leaves the others of its field in place", arguments: 0..<3, 0..<3)
    func removal(gone: Int, left: Int) {
        var index = QueryIndex()
        index.insert(1, [Self.kinds[gone].condition])
        index.insert(2, [Self.kinds[left].condition])
        func found() -> Set<Int> {
            Self.search(&index, for: .todo("x", ["a": Self.kinds[left].value]), steps: 16).found
        }
        #expect(found().contains(2))
        index.remove(1)
        #expect(found() == [2])
        index.remove(2)
        #expect(found() == [])
    }

    @Test("a search in parts counts each field, each element of an array and each range")
    func steps() {
        var index = QueryIndex()
        for list in 0..<20 {
            index.insert(list, [.any(of: (0..<30).map { .field("f\(list * 30 + $0)", equals: .integer(1)) })])
        }
        #expect(Self.search(&index, for: .todo("x"), steps: 1).parts >= 600)
        #expect(Self.search(&index, for: .todo("x"), steps: 16).parts >= 600 / 16)

        index = QueryIndex()
        index.insert(1, [.field("l", contains: .integer(-1))])
        let array = Document.todo("x", ["l": .array((0..<500).map { .integer($0) })])
        #expect(Self.search(&index, for: array, steps: 1).parts >= 500)

        index = QueryIndex()
        for list in 0..<300 { index.insert(list, [.field("n", isLessThan: .integer(Int64(1_000 + list)))]) }
        let (found, parts) = Self.search(&index, for: .todo("x", ["n": .integer(1)]), steps: 1)
        #expect(found.count == 300 && parts >= 300)
    }

    @Test("a search visits few of many ranges that do not contain the value")
    func ranges() {
        var index = QueryIndex()
        for list in 0..<2_000 {
            let start = Int64(list * 10)
            index.insert(list, [.field("n", isAtLeast: .integer(start)), .field("n", isLessThan: .integer(start + 9))])
        }
        let (found, parts) = Self.search(&index, for: .todo("x", ["n": .integer(10_005)]), steps: 1)
        #expect(found == [1_000] && parts < 200)
    }

    @Test("lists that exist during a whole search are found, whatever is added and removed", arguments: UInt64(1)...20)
    func concurrent(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var index = QueryIndex()
        var lists: [Int: [QueryCondition]] = [:]
        var number = 0
        func condition() -> QueryCondition {
            let field = "f\(Int.random(in: 0..<6, using: &random))"
            let value = JSONValue.integer(Int64.random(in: 0..<4, using: &random))
            return switch Int.random(in: 0..<5, using: &random) {
            case 0: .field(field, equals: value)
            case 1: .field(field, contains: value)
            case 2: .field(field, isLessThan: value)
            case 3: .field(field, doesNotEqual: value)
            default: .field(field, isGreaterThan: value)
            }
        }
        func insert(_ index: inout QueryIndex) {
            number += 1
            var conditions = (0..<Int.random(in: 1...2, using: &random)).map { _ in condition() }
            if Bool.random(using: &random) { conditions = [.any(of: conditions + [condition()])] }
            index.insert(number, conditions)
            lists[number] = conditions
        }
        for _ in 0..<30 { insert(&index) }
        for _ in 0..<20 {
            var fields = JSONObject()
            for field in 0..<6 {
                let value = JSONValue.integer(Int64.random(in: 0..<4, using: &random))
                fields["f\(field)"] = Bool.random(using: &random) ? value : .array([value, .integer(1)])
            }
            let document = Document.todo("x", fields)
            var kept = lists
            let (found, _) = Self.search(&index, for: document, steps: 1) { index in
                guard Int.random(in: 0..<4, using: &random) == 0 else { return }
                insert(&index)
                guard let removed = lists.keys.sorted().randomElement(using: &random) else { return }
                index.remove(removed)
                (lists[removed], kept[removed]) = (nil, nil)
            }
            for (number, conditions) in kept where CollectionQuery(where: conditions).matches(document) {
                #expect(found.contains(number), "seed \(seed), \(conditions)")
            }
        }
    }
}
