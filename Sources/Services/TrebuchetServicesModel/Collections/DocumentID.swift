internal import Platform

// trebuchet: TypeScript = string
/// The id of a document: a string that is compared by its UTF-8 bytes, and a string in JSON.
///
/// Ids are equal, and ordered, by their bytes, as in a store and in other languages. Swift's string equality treats different
/// texts as equal: composed and decomposed `é`.
public struct DocumentID: Sendable, Hashable, Comparable {
    /// The id as a string.
    public let text: String

    /// Creates an id from any string; servers accept 1 to 128 bytes.
    public init(_ text: String) { self.text = text }

    public static func == (one: Self, other: Self) -> Bool { one.text.isSameBytes(as: other.text) }

    public static func < (one: Self, other: Self) -> Bool { one.text.precedesInBytes(other.text) }

    public func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }

    /// The number of UTF-8 bytes.
    package var byteCount: Int { text.utf8.count }
}

extension DocumentID: ExpressibleByStringInterpolation, CustomStringConvertible {
    /// Creates an id from a literal.
    public init(stringLiteral text: String) { self.text = text }

    public var description: String { text }
}

extension DocumentID: Codable {
    public init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
