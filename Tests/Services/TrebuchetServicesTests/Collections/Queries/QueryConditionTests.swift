import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite struct QueryConditionTests {
    private let document = Document(
        id: "a",
        fields: [
            "id": .string("a"), "n": .integer(3), "d": .number(2.5), "t": .string("milk"), "l": .array([.string("x")]),
            "address": .object(["city": .string("Berlin"), "geo": .object(["lat": .number(52.5)])]),
            "a.b": .integer(1), "$creator": .integer(2), "big": .integer(1 << 60 + 1), "é": .integer(7),
        ], creator: "ada", created: 4, revision: 9, createdAt: 1_000, updatedAt: 2_000)

    @Test("conditions compare values of their kind only")
    func conditions() {
        let table: [(QueryCondition, Bool)] = [
            (.field("n", equals: .integer(3)), true), (.field("n", equals: .number(3)), true),
            (.field("n", equals: .string("3")), false),
            (.field("n", doesNotEqual: .integer(4)), true), (.field("none", equals: .null), true),
            (.field("none", doesNotEqual: .null), false),
            (.field("n", isLessThan: .integer(4)), true), (.field("n", isLessThan: .integer(3)), false),
            (.field("n", isAtMost: .integer(3)), true),
            (.field("d", isGreaterThan: .integer(2)), true), (.field("d", isAtLeast: .number(2.5)), true),
            (.field("t", isGreaterThan: .integer(2)), false), (.field("none", isGreaterThan: .integer(2)), false),
            (.field("none", isLessThan: .integer(2)), false), (.field("t", isLessThan: .string("tea")), true),
            (.field("l", contains: .string("x")), true), (.field("l", contains: .string("y")), false),
            (.field("t", contains: .string("milk")), false),
            (.field("n", isIn: [.integer(1), .number(3)]), true),
            (.field("n", isIn: [.integer(1), .string("3")]), false),
            (.field("none", isIn: [.null]), true), (.field("n", isIn: []), false),
            (.field("t", hasPrefix: "mi"), true), (.field("t", hasPrefix: ""), true),
            (.field("t", hasPrefix: "Mi"), false),
            (.field("n", hasPrefix: "3"), false), (.field("none", hasPrefix: ""), false),
            (
                .any(
                    [.field("n", equals: .integer(9))],
                    [.field("t", equals: .string("milk")), .field("n", isLessThan: .integer(4))]), true
            ),
            (
                .any(
                    [.field("n", equals: .integer(9))],
                    [.field("t", equals: .string("milk")), .field("n", isLessThan: .integer(3))]), false
            ),
            (.any(of: [.field("n", equals: .integer(9)), .field("n", equals: .integer(3))]), true),
            (.field("address.city", equals: .string("Berlin")), true),
            (.field("address.geo.lat", isGreaterThan: .integer(52)), true),
            (.field("address.street", equals: .null), true), (.field("t.x", equals: .null), true),
            (.field("a.b", equals: .null), true),
            (.field(#"a\.b"#, equals: .integer(1)), true), (.field(#"\$creator"#, equals: .integer(2)), true),
            (.field("$creator", equals: .string("ada")), true),
            (.field("$creator", isIn: [.null, .string("bob")]), false),
            (.field("$created", equals: .integer(4)), true), (.field("$revision", isGreaterThan: .integer(8)), true),
            (.field("$createdAt", isAtMost: .integer(1_000)), true),
            (.field("$updatedAt", isGreaterThan: .integer(2_000)), false),
            // Exact where a double is not.
            (.field("big", equals: .number(0x1p60)), false), (.field("big", isGreaterThan: .number(0x1p60)), true),
            // One character and two, which are equal as Swift strings.
            (.field("e\u{301}", equals: .integer(7)), false), (.field("\u{e9}", equals: .integer(7)), true),
        ]
        for (condition, holds) in table { #expect(condition.matches(document) == holds, "\(condition)") }
    }

    @Test("an issued cursor is accepted, whatever texts it contains")
    func longCursors() throws {
        for text in ["\u{1}", "\"", "é", "𝒳", "x"] {
            let long = JSONValue.string(String(repeating: text, count: 600))
            let id = DocumentID(String(repeating: text, count: 128 / text.utf8.count))
            let document = Document.todo(id, ["a": long, "b": long, "c": long, "d": long])
            let order = ["a", "b", "c", "d"].map { QueryOrder.ascending($0) }
            let cursor = QueryCursor(behind: document, in: order)
            let query = CollectionQuery(order: order, limit: 1, after: cursor.text)
            #expect(throws: Never.self) { try CollectionQuery(sent: EncodedJSON(query.value)) }
            #expect(try query.start == cursor)
        }
    }

    @Test("a field path has one normalized form, however it is written")
    func spellings() {
        #expect(FieldPath("a$b") == FieldPath(#"a\$b"#))
        #expect(FieldPath("a.$b") == FieldPath(#"a.\$b"#))
        #expect(FieldPath(#"\$b"#) != FieldPath("$b"))
        #expect(FieldPath(#"a\.b"#) != FieldPath("a.b"))
        #expect(FieldPath(#"\$a\.\\b.c"#).location == .field(["$a.\\b", "c"]))
        #expect(FieldPath(FieldPath(#"\$a\.\\b.$c"#).text).location == .field(["$a.\\b", "$c"]))
    }

    @Test("an invalid query is refused")
    func invalid() {
        let queries = [
            CollectionQuery(limit: 0), CollectionQuery(limit: 10_001), CollectionQuery(limit: -1, includesCount: true),
            CollectionQuery(where: (0..<33).map { .field("f\($0)", equals: .null) }),
            CollectionQuery(where: [.any(of: (0..<33).map { .field("f\($0)", equals: .null) })]),
            CollectionQuery(order: (0..<5).map { .ascending("f\($0)") }),
            CollectionQuery(where: [.field("f", isIn: (0..<65).map { .integer($0) })]),
            CollectionQuery(where: [.any(of: [])]), CollectionQuery(where: [.any([.field("f", equals: .null)], [])]),
            CollectionQuery(where: [.any([.any([.field("f", equals: .null)])])]),
            CollectionQuery(where: [.field("$nothing", equals: .null)]),
            CollectionQuery(where: [.field(#"a\b"#, equals: .null)]),
            CollectionQuery(where: [.field(#"a\"#, equals: .null)]), CollectionQuery(order: [.ascending("$x")]),
            CollectionQuery(where: [.field("a.b.c.d.e.f.g.h.i", equals: .null)]), CollectionQuery(after: "nonsense"),
            CollectionQuery(order: [.ascending("n")], after: QueryCursor(behind: document, in: []).text),
        ]
        for query in queries { #expect(throws: CollectionError.self, "\(query)") { try query.check() } }
        let sensible = [
            CollectionQuery(limit: 0, includesCount: true), CollectionQuery(where: [.field("f", isIn: [])]),
            CollectionQuery(after: QueryCursor(behind: document, in: []).text),
        ]
        for query in sensible { #expect(throws: Never.self) { try query.check() } }
    }

    @Test("equivalent queries have one normalized form, and texts are compared by their bytes")
    func canonical() {
        let (a, b) = (
            QueryCondition.field("a", equals: .integer(1)), QueryCondition.field("b", isIn: [.integer(2), .integer(1)])
        )
        let pairs: [(CollectionQuery, CollectionQuery, isSame: Bool)] = [
            (.init(where: [a, b, a]), .init(where: [b, a]), true),
            (.init(where: [b]), .init(where: [.field("b", isIn: [.integer(1), .integer(2), .number(1)])]), true),
            (.init(where: [.any([a, b], [b])]), .init(where: [.any([b], [b, a])]), true),
            (.init(where: [.field("a", equals: .number(1))]), .init(where: [a]), true),
            (.init(where: [a], includesCount: true), .init(where: [a]), false),
            (.init(where: [a], limit: 1), .init(where: [a]), false),
            (.init(where: [.field("\u{e9}", equals: .null)]), .init(where: [.field("e\u{301}", equals: .null)]), false),
            (.init(order: [.ascending("\u{e9}")]), .init(order: [.ascending("e\u{301}")]), false),
            (
                .init(where: [.field("a", equals: .string("\u{e9}"))]),
                .init(where: [.field("a", equals: .string("e\u{301}"))]),
                false
            ),
        ]
        for (one, other, isSame) in pairs {
            #expect((one.canonical == other.canonical) == isSame, "\(one) and \(other)")
            #expect(Set([one.canonical, other.canonical]).count == (isSame ? 1 : 2), "\(one) and \(other)")
        }
    }

    @Test("queries have a documented JSON form; older forms can be read, and unknown members are refused")
    func json() throws {
        let cursor = QueryCursor(behind: document, in: [.ascending("n")]).text
        let query = CollectionQuery(
            where: [
                .field("a", equals: .integer(1)), .field("b", isIn: [.null]),
                .any([.field("c", hasPrefix: "x")], [.field("d", isLessThan: .number(1.5))]),
            ],
            order: [.ascending("n")], limit: 3, after: cursor, includesCount: true)
        #expect(try CollectionQuery(json: query.json()) == query)
        #expect(try JSONValue(encoding: query).decode(CollectionQuery.self) == query)
        #expect(
            String(
                decoding: try CollectionQuery(where: [.any(of: [.field("c", hasPrefix: "x")])]).json(), as: UTF8.self)
                == #"{"conditions":[{"any":[[{"comparison":"prefix","field":"c","value":"x"}]]}],"order":[]}"#)
        let old =
            #"{"conditions":[{"field":"a","comparison":"equal","value":1}],"order":[{"field":"n","isDescending":true}],"limit":2}"#
        #expect(
            try CollectionQuery(json: Array(old.utf8))
                == CollectionQuery(where: [.field("a", equals: .integer(1))], order: [.descending("n")], limit: 2))
        #expect(try CollectionQuery(json: Array("{}".utf8)) == .all)
        for text in [
            "[]", #"{"wher":[]}"#, #"{"limit":1.5}"#, #"{"conditions":{}}"#, #"{"conditions":[{"field":"a"}]}"#,
            #"{"conditions":[{"field":"a","comparison":"like","value":1}]}"#,
            #"{"conditions":[{"any":[[]],"field":"a"}]}"#, #"{"conditions":[{"any":[{}]}]}"#,
            #"{"order":[{"field":1}]}"#, #"{"counts":1}"#, #"{"after":1}"#,
        ] {
            #expect(throws: (any Error).self, "\(text)") { try CollectionQuery(json: Array(text.utf8)) }
        }
    }

    @Test("a cursor identifies its position permanently, in few bytes, whatever the document contains")
    func cursors() throws {
        let order: [QueryOrder] = [.descending("t"), .ascending("v"), .ascending("n"), .ascending("none")]
        let texts = ["", "x", String(repeating: "é", count: 40_000), String(repeating: "é", count: 40_000) + "x"]
        let values: [JSONValue] = [.null, .array([.integer(1)]), .object(["a": .null]), .number(0.1), .bool(true)]
        var documents: [Document] = []
        for (index, text) in texts.enumerated() {
            for (place, value) in values.enumerated() {
                let created = 100 - index * 10 - place
                documents.append(
                    Document(
                        id: DocumentID("\(index)-\(place)"),
                        fields: ["t": .string(text), "v": value, "n": .integer(5)],
                        created: created))
            }
        }
        let sorted = documents.sorted(by: order.precedes)
        for (index, document) in sorted.enumerated() {
            let text = QueryCursor(behind: document, in: order).text
            #expect(text.utf8.count < 2_000)
            let cursor = try QueryCursor(text, order)
            #expect(sorted.filter { cursor.precedes($0, in: order) } == Array(sorted[(index + 1)...]), "\(document.id)")
        }
        for text in ["", "!", "W10", CursorText.text(Array("[1]".utf8)), String(repeating: "A", count: 9_000)] {
            #expect(throws: CollectionError.self) { try QueryCursor(text, []) }
        }
        let text = QueryCursor(behind: documents[0], in: [.ascending("n")]).text
        for other: QueryOrder in [.descending("n"), .ascending("v")] {
            #expect(throws: CollectionError.self, "a cursor belongs to its order") { try QueryCursor(text, [other]) }
        }
    }

    @Test("the text of a cursor needs no escapes, and only its exact form is accepted")
    func cursorText() {
        for count in 0..<20 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 97 &+ 31) }
            #expect(CursorText.bytes(CursorText.text(bytes)) == bytes)
        }
        #expect(CursorText.text([0xFB, 0xFF]) == "-_8")
        #expect(CursorText.bytes("-_9") == nil && CursorText.bytes("A") == nil && CursorText.bytes("é") == nil)
    }
}
