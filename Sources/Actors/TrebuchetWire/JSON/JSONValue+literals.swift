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
