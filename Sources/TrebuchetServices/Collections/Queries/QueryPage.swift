internal import TrebuchetWire

// trebuchet: as declared
/// Some of the documents that a query finds, as they were when it was asked.
public struct QueryPage: Codable, Sendable, Equatable {
    /// In the query's order.
    public let documents: [Document]
    /// The place behind the last of them, for ``CollectionQuery/after``; nil when there are no more.
    public let cursor: String?
    /// How many documents match, on all pages; nil unless the query counts.
    public let count: Int?
    /// The number of the last write that is in it.
    public let revision: Int
}

/// Within what other coders read and write.
extension QueryPage {
    public init(from decoder: any Decoder) throws {
        self = try Self.readDirectly(from: decoder) ?? QueryPage(json: JSONValue(from: decoder).json)
    }

    public func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        try JSONValue(json: json()).encode(to: encoder)
    }
}
