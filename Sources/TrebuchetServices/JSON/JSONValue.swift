internal import Bytes
internal import TrebuchetWire

/// Any JSON: what a service keeps and hands on without knowing its type.
///
/// Whole numbers between `Int64.min` and `Int64.max` stay exact, others are doubles.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])
}

extension JSONValue: Codable {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    public init(from decoder: any Decoder) throws {
        // Containers first: they fail fast on anything else, and most values are objects.
        if let object = try? decoder.container(keyedBy: Name.self) {
            var members: [String: JSONValue] = [:]
            for name in object.allKeys { members[name.stringValue] = try object.decode(JSONValue.self, forKey: name) }
            self = .object(members)
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
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else {
            self = .array(try value.decode([JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        if case .object(let members) = self {
            var object = encoder.container(keyedBy: Name.self)
            // In order: an encoder that is given the same writes the same, and differences stay small.
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                try object.encode(value, forKey: Name(stringValue: name))
            }
            return
        }
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let bool): try container.encode(bool)
        case .integer(let integer): try container.encode(integer)
        case .number(let number): try container.encode(number)
        case .string(let text): try container.encode(text)
        case .array(let elements): try container.encode(elements)
        case .object: break
        }
    }
}

extension JSONValue {
    /// What a value is in JSON. Throws `EncodingError`.
    public init(encoding value: some Encodable) throws {
        self = try Self.bytes(of: value).withUnsafeBytes {
            try ValueCoder(version: .v3).decode(JSONValue.self, from: $0)
        }
    }

    /// The value that this JSON is. Throws when it is not one of that type.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let same = self as? Value { return same }
        return try Self.bytes(of: self).withUnsafeBytes { try ValueCoder(version: .v3).decode(type, from: $0) }
    }

    private static func bytes(of value: some Encodable) throws -> [UInt8] {
        var buffer = ByteBuffer()
        try ValueCoder(version: .v3).encode(value, into: &buffer)
        return Array(buffer.bytes)
    }

    /// About how many bytes the JSON has: escapes of strings are not counted, and numbers as 8.
    var byteCount: Int {
        switch self {
        case .null, .bool: 5
        case .integer, .number: 8
        case .string(let text): text.utf8.count + 2
        case .array(let elements): elements.reduce(2) { $0 + $1.byteCount + 1 }
        case .object(let members): members.reduce(2) { $0 + $1.key.utf8.count + $1.value.byteCount + 4 }
        }
    }
}
