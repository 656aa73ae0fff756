import Testing

@testable import TrebuchetServices

@Suite("The index of queries") struct QueryIndexTests {
    private static let kinds: [(condition: QueryCondition, value: JSONValue)] = [
        (.equal("a", .integer(1)), .integer(1)), (.contains("a", .integer(1)), .array([.integer(1)])),
        (.greater("a", .integer(0)), .integer(1)),
    ]

    @Test("removing a list leaves the others of its field in place", arguments: 0..<3, 0..<3)
    func removal(gone: Int, left: Int) {
        var index = QueryIndex()
        index.insert(1, [Self.kinds[gone].condition])
        index.insert(2, [Self.kinds[left].condition])
        func found() -> Set<Int> {
            var found: Set<Int> = []
            index.find(.todo("x", ["a": Self.kinds[left].value]), &found)
            return found
        }
        #expect(found().contains(2))
        index.remove(1)
        #expect(found() == [2])
        index.remove(2)
        #expect(found() == [])
    }
}
