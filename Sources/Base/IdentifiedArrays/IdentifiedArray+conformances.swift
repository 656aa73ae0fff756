extension IdentifiedArray: Equatable where Element: Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.elements == right.elements }
}

extension IdentifiedArray: Hashable where Element: Hashable {
    public func hash(into hasher: inout Hasher) { hasher.combine(elements) }
}

extension IdentifiedArray: Encodable where Element: Encodable {
    /// Encodes the elements as an array.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(elements)
    }
}

extension IdentifiedArray: Decodable where Element: Decodable {
    /// Decodes an array. Throws `DecodingError.dataCorrupted` when two elements have the same id.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        try self.init(try container.decode([Element].self)) { _, second in
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "two elements have the id \(second.id)")
        }
    }
}

extension IdentifiedArray: ExpressibleByArrayLiteral {
    /// Creates an array that keeps the first of several elements with the same id.
    public init(arrayLiteral elements: Element...) { self.init(uniqueElements: elements) }
}

extension IdentifiedArray: CustomStringConvertible {
    public var description: String { elements.description }
}

extension IdentifiedArray: CustomReflectable {
    /// A mirror of the array's elements.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: elements, displayStyle: .collection) }
}
