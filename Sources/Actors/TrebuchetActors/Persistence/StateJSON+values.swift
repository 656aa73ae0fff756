internal import Platform
internal import TrebuchetWire

extension StateJSON {
    /// The members of an object, each name once. Names are compared by bytes: `é` as one character and as two are different
    /// names.
    public struct Object: Sendable, Hashable {
        private var values: [ByteText: StateJSON] = [:]

        /// Creates an object without members, `{}`.
        public init() {}

        /// The number of members.
        public var count: Int { values.count }
        /// A Boolean value that indicates whether there are no members.
        public var isEmpty: Bool { values.isEmpty }

        /// The names in the order of their bytes.
        public var names: [String] {
            values.keys.sorted().map(\.text)
        }

        /// The member with this name; nil if there is none. Setting nil removes it; a member with the value null exists.
        public subscript(name: String) -> StateJSON? {
            get { values[ByteText(name)] }
            _modify { yield &values[ByteText(name)] }
        }

        /// Removes a member and returns its value.
        mutating func removeValue(named name: String) -> StateJSON? { values.removeValue(forKey: ByteText(name)) }
    }

    /// A number of JSON as its text, without limits of range or precision. Two numbers are equal if their texts are.
    public struct Number: Sendable, Hashable, CustomStringConvertible {
        /// The text, such as `-12`, `0.1` or `1e400`.
        public let text: String

        /// Creates a number from text; nil if the text is no number of JSON (RFC 8259), such as `01`, `.5`, `nan`.
        public init?(_ text: String) {
            guard let first = text.utf8.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first),
                let last = text.utf8.last, (0x30...0x39).contains(last), JSONText.isValue(Array(text.utf8))
            else { return nil }
            self.text = text
        }

        /// Creates an integer.
        public init(_ number: some BinaryInteger) { text = String(number) }

        /// Creates a number; nil if the value is not finite, which JSON cannot represent.
        public init?(_ number: Double) {
            guard number.isFinite else { return nil }
            text = number.description
        }

        /// Creates a number from text.
        ///
        /// - Parameter text: the text, which the caller has validated.
        init(checked text: String) { self.text = text }

        /// The number as an integer, if it is written without fraction and exponent and fits; nil otherwise.
        public var int: Int? { Int(text) }
        /// The nearest double; nil if the number exceeds the range of doubles.
        public var double: Double? { Double(text).flatMap { $0.isFinite ? $0 : nil } }

        public var description: String { text }
    }
}

extension StateJSON.Object: ExpressibleByDictionaryLiteral {
    /// Creates an object. The last of several members with the same name counts.
    public init(dictionaryLiteral elements: (String, StateJSON)...) {
        for (name, value) in elements { self[name] = value }
    }
}

extension StateJSON {
    /// The text; nil for another kind of value.
    public var string: String? { if case .string(let text) = self { text } else { nil } }
    /// `true` or `false`; nil for another kind of value.
    public var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    /// The integer; nil for another kind of value, and if it is written with a fraction or an exponent or does not fit.
    public var int: Int? { if case .number(let number) = self { number.int } else { nil } }
    /// The nearest double; nil for another kind of value, and if it exceeds the range of doubles.
    public var double: Double? { if case .number(let number) = self { number.double } else { nil } }

    /// Creates an integer.
    public init(_ number: Int) { self = .number(Number(number)) }
    /// Creates a text.
    public init(_ text: String) { self = .string(text) }
    /// Creates `true` or `false`.
    public init(_ bool: Bool) { self = .bool(bool) }
}

extension StateJSON: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates a text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an integer.
    public init(integerLiteral value: Int) { self = .number(Number(value)) }
    /// Creates a number; null for one that is not finite.
    public init(floatLiteral value: Double) { self = Number(value).map { .number($0) } ?? .null }
    /// Creates `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates an array.
    public init(arrayLiteral elements: StateJSON...) { self = .array(elements) }
    /// Creates an object. The last of several members with the same name counts.
    public init(dictionaryLiteral elements: (String, StateJSON)...) {
        var members = Object()
        for (name, value) in elements { members[name] = value }
        self = .object(members)
    }
}
