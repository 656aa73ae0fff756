package import TrebuchetWire

/// Conformance to `Codable` for a `DirectJSON` type inside values of other coders.
extension DirectJSON where Self: Codable {
    package init(from decoder: any Decoder) throws {
        self = try Self.readDirectly(from: decoder) ?? Self(json: JSONValue(from: decoder).json)
    }

    package func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        try JSONValue(json: json()).encode(to: encoder)
    }
}

extension JSONCursor {
    /// Reads an object and calls `body` to read the value of each member.
    mutating func eachMember(depth: Int, _ body: (inout JSONCursor, _ name: String) throws -> Void) throws {
        guard depth < JSONCursor.maximumDepth else { throw tooDeep() }
        try expect(UInt8(ascii: "{"))
        var isFirst = true
        while let name = try name(&isFirst) { try body(&self, text(name)) }
    }
}

extension JSONValue {
    /// The string, or nil for null. Throws for any other value.
    var textOrNull: String? {
        get throws {
            switch self {
            case .null: nil
            case .string(let text): text
            default: throw ValueError("expected a string")
            }
        }
    }
}
