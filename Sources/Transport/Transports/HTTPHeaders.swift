/// The header fields of an HTTP message, in order. Names compare case-insensitively (RFC 9110 §5.1).
public struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One header field.
    public struct Field: Sendable, Equatable {
        /// The field name as written, in any case.
        public let name: String
        /// The value without surrounding whitespace.
        public let value: String
    }

    /// All fields, in order; a name may occur several times.
    public private(set) var fields: [Field] = []

    /// Creates an empty list of fields.
    public init() {}

    /// Creates one field for each pair, in order; a name that occurs twice gives two fields.
    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// Appends a field; fields with the same name stay.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Removes all fields with a name.
    package mutating func remove(_ name: String) { fields.removeAll { Self.equal($0.name, name) } }

    /// The first value of a field, or nil.
    public subscript(name: String) -> String? { fields.first { Self.equal($0.name, name) }?.value }

    /// Returns all values of a field, one for each occurrence.
    public func values(_ name: String) -> [String] { fields.filter { Self.equal($0.name, name) }.map(\.value) }

    /// Returns the non-empty elements of a comma-separated list, over all occurrences of the field (RFC 9110 §5.6.1).
    public func list(_ name: String) -> [String] {
        values(name).flatMap { line in
            line.utf8.split(separator: UInt8(ascii: ",")).compactMap { element in
                let trimmed = Substring(element).trimmingSpaces
                return trimmed.isEmpty ? nil : String(trimmed)
            }
        }
    }

    /// Returns whether a list contains `token`, ignoring case.
    package func list(_ name: String, contains token: String) -> Bool { list(name).contains { Self.equal($0, token) } }

    /// Returns whether two strings are equal, ignoring ASCII case.
    package static func equal(_ one: String, _ other: String) -> Bool {
        one.utf8.elementsEqual(other.utf8) { lowercase($0) == lowercase($1) }
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}

extension Substring {
    /// The text without leading and trailing spaces and tabs.
    package var trimmingSpaces: Substring {
        var rest = self
        while let first = rest.utf8.first, first == 0x20 || first == 0x09 { rest = rest.dropFirst() }
        while let last = rest.utf8.last, last == 0x20 || last == 0x09 { rest = rest.dropLast() }
        return rest
    }
}
