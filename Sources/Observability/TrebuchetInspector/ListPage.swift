/// The part of a list that is shown: `?page=0&size=100`.
struct ListPage {
    let page: Int
    let size: Int

    init(_ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) {
        page = try query.number("page", in: 0...1_000_000) ?? 0
        size = try query.number("size", in: 1...1_000) ?? 100
    }

    /// The index after the last element of the page.
    var end: Int { (page + 1) * size }

    /// The positions of the page in the list, which may be shorter.
    var positions: Range<Int> { page * size..<end }

    func of<Element>(_ list: [Element]) -> ArraySlice<Element> { list[positions.clamped(to: list.indices)] }

    func head(found: Int) -> [(String, InspectorJSON)] {
        [
            ("page", .count(page)), ("size", .count(size)), ("pages", .count((found + size - 1) / size)),
            ("found", .count(found)),
        ]
    }
}
