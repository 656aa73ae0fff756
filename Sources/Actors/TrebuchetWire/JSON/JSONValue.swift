internal import Bytes
internal import Platform

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

/// Swift values of JSON, and literals.
extension JSONValue {
    /// A number of JSON as its text, without limits of range or precision. Two numbers are equal if their texts are.
    public struct Number: Sendable, Hashable, CustomStringConvertible {
        /// The text, such as `0.10` or `1e400`.
        public let text: String

        /// Creates a number from text; nil if the text is no number of JSON (RFC 8259), such as `01`, `.5`, `nan`.
        public init?(_ text: String) {
            guard let first = text.utf8.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first),
                let last = text.utf8.last, (0x30...0x39).contains(last), JSONText.isValue(Array(text.utf8))
            else { return nil }
            self.text = text
        }

        /// Creates a number from text.
        ///
        /// - Parameter text: the text, which the caller has validated.
        init(checked text: String) { self.text = text }

        public var description: String { text }
    }

    /// The text; nil for another kind of value.
    public var string: String? { if case .string(let text) = self { text } else { nil } }
    /// `true` or `false`; nil for another kind of value.
    public var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    /// The integer; nil for another kind of value, and if it is written with a fraction or an exponent or does not fit.
    public var int: Int? { if case .integer(let number) = self { Int(number) } else { nil } }
    /// The nearest double; nil for another kind of value, and if it exceeds the range of doubles.
    public var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        case .exact(let number): Double(number.text).flatMap { $0.isFinite ? $0 : nil }
        default: nil
        }
    }

    /// Creates an integer.
    public init(_ number: Int) { self = .integer(Int64(number)) }
    /// Creates a number: an integer for a whole number that a double represents exactly, because 1.0 and 1 are the same number.
    public init(_ number: Double) {
        if let whole = Int64(exactly: number), whole.magnitude < 1 << 53 {
            self = .integer(whole)
        } else {
            self = .number(number)
        }
    }
    /// Creates a text.
    public init(_ text: String) { self = .string(text) }
    /// Creates `true` or `false`.
    public init(_ bool: Bool) { self = .bool(bool) }
}

extension JSONValue: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates a text.
    public init(stringLiteral value: String) { self.init(value) }
    /// Creates an integer.
    public init(integerLiteral value: Int) { self.init(value) }
    /// Creates a number.
    public init(floatLiteral value: Double) { self.init(value) }
    /// Creates `true` or `false`.
    public init(booleanLiteral value: Bool) { self.init(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object. The last of several members with the same name is used.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements.lazy.map { (key: $0.0, value: $0.1) }))
    }
}
