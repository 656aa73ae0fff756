/// Some of what a query finds, as it was when the server was asked.
public struct CollectionPage<Element: Sendable>: Sendable {
    /// In the query's order.
    public let items: [Element]
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
    /// It does not know of writes that wait. Throws `CollectionError` for what the server refuses, among others a query that makes no
    /// sense, and `unreadable` for a document that is no element; `TrebuchetError` and `TransportError` as all calls.
    public func get<Element: Decodable & Sendable>(
        _ key: CollectionKey<Element>, _ query: CollectionQuery = .all
    ) async throws -> CollectionPage<Element> {
        let page = try await collections.link(to: key.name, client).actor().get(query)
        let items = try page.documents.map { document in
            do {
                return try document.value.decode(Element.self)
            } catch {
                throw CollectionError.unreadable(id: document.id.text)
            }
        }
        return CollectionPage(items: items, cursor: page.cursor, count: page.count)
    }
}
