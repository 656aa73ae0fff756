extension IdentifiedArray: Equatable where Element: Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.elements == right.elements }
}

extension IdentifiedArray: Hashable where Element: Hashable {
    public func hash(into hasher: inout Hasher) { hasher.combine(elements) }
}

extension IdentifiedArray: Encodable where Element: Encodable {
    /// As an array of the elements.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(elements)
    }
}

extension IdentifiedArray: Decodable where Element: Decodable {
    /// From an array; throws `DecodingError.dataCorrupted` when two elements have one id.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        try self.init(try container.decode([Element].self)) { _, second in
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "two elements have the id \(second.id)")
        }
    }
}

extension IdentifiedArray: ExpressibleByArrayLiteral {
    /// Keeps the first of several elements with one id.
    public init(arrayLiteral elements: Element...) { self.init(uniqueElements: elements) }
}

extension IdentifiedArray: CustomStringConvertible {
    public var description: String { elements.description }
}

extension IdentifiedArray: CustomReflectable {
    /// As an array of the elements.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: elements, displayStyle: .collection) }
}
