/// The fields of an HTTP head in their order; names compare without regard to case (RFC 9110 §5.1).
public struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One line of a head.
    public struct Field: Sendable, Equatable {
        /// As it was written; letters may be of either case.
        public let name: String
        /// Without the spaces around it.
        public let value: String
    }

    /// All lines, in their order; a name may come several times.
    public private(set) var fields: [Field] = []

    /// A head without fields.
    public init() {}

    /// One line for each pair, in their order; a name that comes twice has two lines.
    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// Adds a line behind the others; those of the same name stay.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Takes all lines of a field away.
    package mutating func remove(_ name: String) { fields.removeAll { Self.equal($0.name, name) } }

    /// The first value of a field, or nil.
    public subscript(name: String) -> String? { fields.first { Self.equal($0.name, name) }?.value }

    /// All values of a field, one for each line.
    public func values(_ name: String) -> [String] { fields.filter { Self.equal($0.name, name) }.map(\.value) }

    /// The elements of a comma-separated list, over all its lines, without empty ones (RFC 9110 §5.6.1).
    public func list(_ name: String) -> [String] {
        values(name).flatMap { line in
            line.utf8.split(separator: UInt8(ascii: ",")).compactMap { element in
                let trimmed = Substring(element).trimmingSpaces
                return trimmed.isEmpty ? nil : String(trimmed)
            }
        }
    }

    /// Whether a list names `token`, in any case of letters.
    package func list(_ name: String, contains token: String) -> Bool { list(name).contains { Self.equal($0, token) } }

    /// Equal but for the case of ASCII letters.
    package static func equal(_ one: String, _ other: String) -> Bool {
        one.utf8.elementsEqual(other.utf8) { lowercase($0) == lowercase($1) }
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}

extension Substring {
    /// Without spaces and tabs at both ends.
    package var trimmingSpaces: Substring {
        var rest = self
        while let first = rest.utf8.first, first == 0x20 || first == 0x09 { rest = rest.dropFirst() }
        while let last = rest.utf8.last, last == 0x20 || last == 0x09 { rest = rest.dropLast() }
        return rest
    }
}
