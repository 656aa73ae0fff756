internal import Platform
internal import Bytes

// trebuchet: TypeScript = unknown
/// Any JSON value: services store and forward it without knowledge of its type, and `migrate:` changes it in place.
///
///     json["title"] = json["name"]
///     json["name"] = nil
///     json["todos"]?.mutateEach { $0["priority"] = 1 }
///
/// Integers between `Int64.min` and `Int64.max` are exact, other numbers of services are doubles. Strings and member names are
/// compared by their bytes.
public enum JSONValue: Sendable {
    /// `null`; in a document, the same as a missing field.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// An exact integer.
    case integer(Int64)
    /// Any other number, as a double. JSON has no NaN and no infinity: they are written as `null`.
    case number(Double)
    /// A number as it is written: one of a persisted state, of `init(text:)` or of `init(encoding:)` whose text or value the two
    /// others lose, such as `0.10` or `18446744073709551615`. Collections round it to a double.
    case exact(Number)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object; its members are unordered.
    case object(JSONObject)
}

extension JSONValue: Hashable {
    public static func == (one: Self, other: Self) -> Bool {
        switch (one, other) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.integer(let one), .integer(let other)): one == other
        // NaN equals NaN here; otherwise code that sends a value only when it differs would send NaN for ever.
        case (.number(let one), .number(let other)): one == other || (one.isNaN && other.isNaN)
        case (.exact(let one), .exact(let other)): one == other
        case (.string(let one), .string(let other)): one.isSameBytes(as: other)
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)): one == other
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let bool): hasher.combine(bool)
        case .integer(let integer): hasher.combine(integer)
        case .number(let number): hasher.combine(number.isNaN ? .nan : number)
        case .exact(let number): hasher.combine(number)
        case .string(let text): text.hashBytes(into: &hasher)
        case .array(let elements): hasher.combine(elements)
        case .object(let members): hasher.combine(members)
        }
    }
}

extension JSONValue: Codable {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Reads the value from any decoder, also from one that is not Trebuchet's.
    public init(from decoder: any Decoder) throws {
        if let value = try Self.readDirectly(from: decoder) {
            self = value
            return
        }
        // Containers first: they fail fast for other values, and most values are objects.
        if let object = try? decoder.container(keyedBy: Name.self) {
            let members = try object.allKeys.map { name in
                (key: name.stringValue, value: try object.decode(JSONValue.self, forKey: name))
            }
            self = .object(JSONObject(members))
            return
        }
        if var array = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !array.isAtEnd { elements.append(try array.decode(JSONValue.self)) }
            self = .array(elements)
            return
        }
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let text = try? value.decode(String.self) {
            self = .string(text)
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let integer = try? value.decode(Int64.self) {
            self = .integer(integer)
        } else {
            self = .number(try value.decode(Double.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        if case .object(let members) = self {
            var object = encoder.container(keyedBy: Name.self)
            // Sorted, so that equal values encode to equal bytes and deltas stay small.
            for (name, value) in members.sorted { try object.encode(value, forKey: Name(stringValue: name)) }
            return
        }
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let bool): try container.encode(bool)
        case .integer(let integer): try container.encode(integer)
        case .number(let number): try container.encode(number)
        case .exact(let number):
            if let whole = UInt64(number.text) {
                try container.encode(whole)
            } else {
                try container.encode(Double(number.text))
            }
        case .string(let text): try container.encode(text)
        case .array(let elements): try container.encode(elements)
        case .object: break
        }
    }
}

extension JSONValue {
    /// Creates the JSON form of a value, as states and documents have it. Throws `EncodingError`.
    public init(encoding value: some Encodable) throws { try self.init(encoding: value, with: ValueCoder(), .exact) }

    package init(
        encoding value: some Encodable, with coder: ValueCoder, _ reading: CanonicalJSON.Reading
    ) throws {
        var buffer = ByteBuffer()
        try coder.encode(value, into: &buffer)
        try self.init(buffer.bytes, reading)
    }

    /// Decodes the value as `type`, such as an older form of a state that Swift code converts to the new one. References to actors
    /// need their system, so they do not decode here. Throws when the JSON does not match the type.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let same = self as? Value { return same }
        return try json.withUnsafeBytes { try ValueCoder().decode(type, from: $0) }
    }
}
