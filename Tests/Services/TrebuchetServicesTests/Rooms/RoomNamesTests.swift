import Platform
import Testing

@testable import TrebuchetServices

@Suite("Names of rooms in order")
struct RoomNamesTests {
    @Test("a page has the names with a prefix after a name, a limited number, in byte order")
    func pages() {
        var names = RoomNames()
        for name in ["b-2", "a-1", "b-1", "c-1", "b-10", "a-1", "b", "b-\u{E9}", "b-e\u{301}"] {
            names.insert(ByteText(name))
        }
        #expect(names.count == 8, "a duplicate name is listed once")
        let cases: [(prefix: String, after: String?, limit: Int, page: [String])] = [
            ("a-", nil, 9, ["a-1"]), ("b-", nil, 9, ["b-1", "b-10", "b-2", "b-e\u{301}", "b-\u{E9}"]),
            ("b-", nil, 2, ["b-1", "b-10"]), ("b-", "b-10", 1, ["b-2"]), ("b-", "b-1", 0, []), ("b-", "b-", 1, ["b-1"]),
            ("b-", "a-9", 1, ["b-1"]), ("b-", "b-\u{E9}", 9, []), ("b-", "c-1", 9, []), ("d-", nil, 9, []),
            ("c-", nil, .max, ["c-1"]), ("", nil, 2, ["a-1", "b"]), ("b-", nil, -1, []),
        ]
        for (prefix, after, limit, page) in cases {
            let found = names.page(prefix: prefix, after: after, limit: limit).map { Array($0.text.utf8) }
            #expect(found == page.map { Array($0.utf8) }, "\(prefix) after \(after ?? "-"), \(limit)")
        }
        for name in ["b-1", "z", "b-1"] { names.remove(ByteText(name)) }
        #expect(names.page(prefix: "b-", after: nil, limit: 1).map(\.text) == ["b-10"])
        names.remove(ByteText("b-e\u{301}"))
        #expect(
            names.page(prefix: "b-", after: "b-2", limit: 9).map { Array($0.text.utf8) } == [Array("b-\u{E9}".utf8)])
    }

    @Test("the result for many names equals a sorted list")
    func many() {
        var random = RandomSource(seed: 5)
        var names = RoomNames()
        var model: Set<String> = []
        for _ in 0..<2_000 {
            let name = "t\(Int.random(in: 0..<3, using: &random))-\(Int.random(in: 0..<300, using: &random))"
            if Int.random(in: 0..<3, using: &random) == 0 {
                names.remove(ByteText(name))
                model.remove(name)
            } else {
                names.insert(ByteText(name))
                model.insert(name)
            }
        }
        let expected = model.filter { $0.hasPrefix("t1-") }.sorted()
        #expect(names.page(prefix: "t1-", after: nil, limit: .max).map(\.text) == expected)
        #expect(names.count == model.count)
    }
}
