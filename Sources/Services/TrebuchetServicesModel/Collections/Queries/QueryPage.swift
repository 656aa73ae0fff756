internal import TrebuchetWire

// trebuchet: as declared
/// A page of a query's results, as of the time of the request.
public struct QueryPage: Codable, Sendable, Equatable {
    /// The documents, in the query's order.
    public let documents: [Document]
    /// The cursor after the last document, for ``CollectionQuery/after``; nil on the last page.
    public let cursor: String?
    /// The number of matching documents on all pages; nil unless the query counts.
    public let count: Int?
    /// The number of the last write that the page includes.
    public let revision: Int

    package init(documents: [Document], cursor: String?, count: Int?, revision: Int) {
        self.documents = documents
        self.cursor = cursor
        self.count = count
        self.revision = revision
    }
}

/// Conformance to `Codable` for other coders.
extension QueryPage {
    public init(from decoder: any Decoder) throws {
        self = try Self.readDirectly(from: decoder) ?? QueryPage(json: JSONValue(from: decoder).json)
    }

    public func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        try JSONValue(json: json()).encode(to: encoder)
    }
}
