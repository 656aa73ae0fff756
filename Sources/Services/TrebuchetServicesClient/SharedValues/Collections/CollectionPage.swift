/// A page of a query's results, as of the time of the request.
public struct CollectionPage<Element: Sendable>: Sendable {
    /// The elements, in the query's order.
    public let items: [Element]
    /// Documents of the page that are not valid elements, with the reasons.
    public let unreadable: [UnreadableDocument]
    /// The cursor after the last document, for ``CollectionQuery/after``; nil on the last page.
    public let cursor: String?
    /// The number of matching documents on all pages; nil unless the query counts.
    public let count: Int?
}

extension TrebuchetBackend {
    /// Requests one page of a query's results. Its size is the query's limit, or fewer when a response has no room for as many
    /// (`CollectionLimits.pageBytes` at the server). The next page is that of the same query with the cursor:
    ///
    ///     var cursor: String?
    ///     repeat {
    ///         let page = try await backend.get(Schema.todos, CollectionQuery(limit: 100, after: cursor))
    ///         show(page.items)
    ///         cursor = page.cursor
    ///     } while cursor != nil
    ///
    /// A document that is not a valid element is omitted, and ``CollectionPage/unreadable`` names it. Pending writes are not
    /// included. Throws `CollectionError` for requests that the server refuses, such as an invalid query; `TrebuchetError` and
    /// `TransportError` as all calls.
    public func get<Element: Decodable & Sendable>(
        _ key: CollectionKey<Element>, _ query: CollectionQuery = .all
    ) async throws -> CollectionPage<Element> {
        let page = try await collections.collection(key.name, client).actor().get(query)
        let shown = page.documents.map { DisplayedDocument<Element>($0) }
        return CollectionPage(
            items: shown.compactMap(\.element), unreadable: shown.compactMap(\.unreadable), cursor: page.cursor,
            count: page.count)
    }
}
