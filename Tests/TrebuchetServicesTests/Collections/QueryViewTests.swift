import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

@Suite struct QueryViewTests {
    @Test("conditions hold for what they say, and for nothing of another kind")
    func conditions() {
        let document = Document.todo(
            "a", ["n": .integer(3), "d": .number(2.5), "t": .string("milk"), "l": .array([.string("x")])])
        let table: [(QueryCondition, Bool)] = [
            (.equal("n", .integer(3)), true), (.equal("n", .number(3)), true), (.equal("n", .string("3")), false),
            (.notEqual("n", .integer(4)), true), (.equal("none", .null), true), (.notEqual("none", .null), false),
            (.less("n", .integer(4)), true), (.less("n", .integer(3)), false), (.lessOrEqual("n", .integer(3)), true),
            (.greater("d", .integer(2)), true), (.greaterOrEqual("d", .number(2.5)), true),
            (.greater("t", .integer(2)), false), (.greater("none", .integer(2)), false),
            (.less("none", .integer(2)), false), (.less("t", .string("tea")), true),
            (.contains("l", .string("x")), true), (.contains("l", .string("y")), false),
            (.contains("t", .string("milk")), false),
        ]
        for (condition, holds) in table { #expect(condition.holds(for: document) == holds, "\(condition)") }
    }

    @Test("a query that makes no sense is refused")
    func invalid() {
        let queries = [
            CollectionQuery(limit: 0), CollectionQuery(limit: 10_001),
            CollectionQuery(where: (0..<17).map { .equal("f\($0)", .null) }),
            CollectionQuery(order: (0..<5).map { .ascending("f\($0)") }),
            CollectionQuery(where: [.equal("f", .string(String(repeating: "x", count: 5_000)))]),
        ]
        for query in queries { #expect(throws: CollectionError.self) { try query.check() } }
    }

    @Test("a result that is kept up to date is the one that is computed anew", arguments: UInt64(1)...20)
    func model(seed: UInt64) {
        var random = RandomSource(seed: seed)
        let queries = [
            CollectionQuery.all,
            CollectionQuery(where: [.less("n", .integer(6))]),
            CollectionQuery(order: [.descending("n")], limit: 4),
            CollectionQuery(
                where: [.equal("done", .bool(true))], order: [.ascending("t"), .descending("n")], limit: 3),
            CollectionQuery(order: [.ascending("n")], limit: 1),
        ]
        var documents: [DocumentID: Document] = [:]
        var views = queries.map { QueryView($0, of: []) { $0.fields["secret"] == nil } }
        var shown = views.map(\.shown)
        for step in 1...400 {
            let id: DocumentID = "d\(Int.random(in: 0..<15, using: &random))"
            let before = documents[id]
            if before != nil, Int.random(in: 0..<4, using: &random) == 0 {
                documents[id] = nil
            } else {
                var document = before ?? .todo(id, created: step)
                document.set([
                    "n": Int.random(in: 0..<9, using: &random) == 8
                        ? .null : .integer(Int64.random(in: 0..<10, using: &random)),
                    "t": .string(["a", "b", "c"].randomElement(using: &random)!),
                    "done": .bool(Bool.random(using: &random)),
                    "secret": Int.random(in: 0..<6, using: &random) == 0 ? .bool(true) : .null,
                ])
                document.revision = step
                documents[id] = document
            }
            let change = DocumentChange(id: id, after: documents[id])
            for index in queries.indices {
                let old = Array(shown[index])
                let isChanged = views[index].apply(change, to: &shown[index])
                let naive = documents.values
                    .filter { queries[index].matches($0) && $0.fields["secret"] == nil }
                    .sorted(by: queries[index].precedes).prefix(queries[index].limit ?? .max)
                #expect(Array(shown[index]) == Array(naive), "seed \(seed), step \(step), query \(index)")
                #expect(isChanged == (old != Array(naive)), "seed \(seed), step \(step), query \(index)")
            }
        }
    }
}
