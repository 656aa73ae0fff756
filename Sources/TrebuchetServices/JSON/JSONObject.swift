internal import Platform

// trebuchet: TypeScript = { [name: string]: unknown }
/// The members of an object in JSON, each name once. Names are what their bytes are: `é` in one character and in two are two
/// names.
public struct JSONObject: Sendable, Hashable {
    private var members: [ByteText: JSONValue] = [:]

    /// An object without members, `{}`.
    public init() {}

    /// How many members it has.
    public var count: Int { members.count }
    /// Whether it has no members.
    public var isEmpty: Bool { members.isEmpty }
    /// In no order.
    public var names: [String] { members.keys.map(\.text) }
    /// In no order.
    public var values: some Collection<JSONValue> { members.values }

    /// The member of this name; nil when there is none. Setting nil takes it away; a member that is null is there.
    public subscript(name: String) -> JSONValue? {
        get { members[ByteText(name)] }
        set { members[ByteText(name)] = newValue }
    }

    /// The members by the bytes of their names.
    public var sorted: [(name: String, value: JSONValue)] {
        members.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
    }

    /// The members for which `isIncluded` is true.
    public func keeping(where isIncluded: (_ name: String, _ value: JSONValue) throws -> Bool) rethrows -> JSONObject {
        var kept = self
        kept.members = try members.filter { try isIncluded($0.key.text, $0.value) }
        return kept
    }
}

extension JSONObject: Sequence {
    /// Goes through the members, in no order.
    public struct Iterator: IteratorProtocol {
        fileprivate var rest: Dictionary<ByteText, JSONValue>.Iterator

        public mutating func next() -> (name: String, value: JSONValue)? {
            rest.next().map { ($0.key.text, $0.value) }
        }
    }

    /// In no order.
    public func makeIterator() -> Iterator { Iterator(rest: members.makeIterator()) }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Of members with the same name the last counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (name, value) in elements { self[name] = value }
    }

    /// Of members with the same name the last counts.
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
