internal import Platform

// trebuchet: TypeScript = { [name: string]: unknown }
/// The members of a JSON object, with unique names. Names are compared by their bytes: composed and decomposed `é` are
/// different names.
public struct JSONObject: Sendable, Hashable {
    private var members: [ByteText: JSONValue] = [:]

    /// An object without members, `{}`.
    public init() {}

    /// The number of members.
    public var count: Int { members.count }
    /// True when there are no members.
    public var isEmpty: Bool { members.isEmpty }
    /// The names of the members, unordered.
    public var names: [String] { members.keys.map(\.text) }
    /// The values of the members, unordered.
    public var values: some Collection<JSONValue> { members.values }

    /// The member with this name, or nil when there is none. Setting nil removes the member; a member that is null is present.
    public subscript(name: String) -> JSONValue? {
        get { members[ByteText(name)] }
        set { members[ByteText(name)] = newValue }
    }

    /// The members, sorted by the bytes of their names.
    public var sorted: [(name: String, value: JSONValue)] {
        members.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
    }

    /// Returns the members for which `isIncluded` is true.
    public func keeping(where isIncluded: (_ name: String, _ value: JSONValue) throws -> Bool) rethrows -> JSONObject {
        var kept = self
        kept.members = try members.filter { try isIncluded($0.key.text, $0.value) }
        return kept
    }
}

extension JSONObject: Sequence {
    /// Iterates over the members, unordered.
    public struct Iterator: IteratorProtocol {
        fileprivate var rest: Dictionary<ByteText, JSONValue>.Iterator

        public mutating func next() -> (name: String, value: JSONValue)? {
            rest.next().map { ($0.key.text, $0.value) }
        }
    }

    /// Returns an unordered iterator over the members.
    public func makeIterator() -> Iterator { Iterator(rest: members.makeIterator()) }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Creates an object. The last of several members with the same name is used.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (name, value) in elements { self[name] = value }
    }

    /// Creates an object. The last of several members with the same name is used.
    public init(_ members: some Sequence<(key: String, value: JSONValue)>) {
        for (name, value) in members { self[name] = value }
    }
}

extension JSONObject: Codable {
    public init(from decoder: any Decoder) throws {
        guard case .object(let object) = try JSONValue(from: decoder) else {
            throw DecodingError.typeMismatch(
                JSONObject.self, .init(codingPath: decoder.codingPath, debugDescription: "expected an object"))
        }
        self = object
    }

    public func encode(to encoder: any Encoder) throws { try JSONValue.object(self).encode(to: encoder) }
}
