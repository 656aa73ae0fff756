internal import Platform

// trebuchet: TypeScript = string
/// The id of a document: a text that is what its bytes in UTF-8 are. In JSON it is the text.
///
/// Two are equal, and ordered, by their bytes, as a store and clients in other languages see them. Swift's own equality takes
/// different texts for one: `é` in one character and in two.
public struct DocumentID: Sendable, Hashable, Comparable {
    /// The id as an app writes it.
    public let text: String

    /// Any text; a server takes one of 1 to 128 bytes.
    public init(_ text: String) { self.text = text }

    public static func == (one: Self, other: Self) -> Bool { one.text.isSameBytes(as: other.text) }

    public static func < (one: Self, other: Self) -> Bool { one.text.precedesInBytes(other.text) }

    public func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }

    /// Bytes in UTF-8.
    var byteCount: Int { text.utf8.count }
}

extension DocumentID: ExpressibleByStringInterpolation, CustomStringConvertible {
    /// The same as ``init(_:)``.
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
