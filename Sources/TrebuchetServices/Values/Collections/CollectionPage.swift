/// Some of what a query finds, as it was when the server was asked.
public struct CollectionPage<Element: Sendable>: Sendable {
    /// In the query's order.
    public let items: [Element]
    /// Those of the page that are no elements, and why.
    public let unreadable: [UnreadableDocument]
    /// The place behind the last of them, for ``CollectionQuery/after``; nil when there are no more.
    public let cursor: String?
    /// How many documents match, on all pages; nil unless the query counts.
    public let count: Int?
}

extension TrebuchetBackend {
    /// Asks the server once for what a query finds: one page of it, of as many as the query's limit says, or as one answer has room for
    /// (`CollectionLimits.pageBytes` at the server). The next page is that of the same query behind the cursor:
    ///
    ///     var cursor: String?
    ///     repeat {
    ///         let page = try await backend.get(Schema.todos, CollectionQuery(limit: 100, after: cursor))
    ///         show(page.items)
    ///         cursor = page.cursor
    ///     } while cursor != nil
    ///
    /// A document that is no element is left out, and ``CollectionPage/unreadable`` names it. It does not know of writes that wait.
    /// Throws `CollectionError` for what the server refuses, among others a query that makes no sense; `TrebuchetError` and
    /// `TransportError` as all calls.
    public func get<Element: Decodable & Sendable>(
        _ key: CollectionKey<Element>, _ query: CollectionQuery = .all
    ) async throws -> CollectionPage<Element> {
        let page = try await collections.link(to: key.name, client).actor().get(query)
        let shown = page.documents.map { ShownDocument<Element>($0) }
        return CollectionPage(
            items: shown.compactMap(\.element), unreadable: shown.compactMap(\.unreadable), cursor: page.cursor,
            count: page.count)
    }
}
