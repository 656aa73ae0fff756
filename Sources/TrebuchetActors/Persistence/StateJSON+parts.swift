internal import Platform
internal import TrebuchetWire

extension StateJSON {
    /// The members of an object, each name once. Names are what their bytes are: `é` in one character and in two are two names.
    public struct Object: Sendable, Hashable {
        private var values: [ByteText: StateJSON] = [:]

        /// An object without members, `{}`.
        public init() {}

        /// How many members it has.
        public var count: Int { values.count }
        /// Whether it has no members.
        public var isEmpty: Bool { values.isEmpty }

        /// In the order of their bytes.
        public var names: [String] {
            values.keys.sorted().map(\.text)
        }

        /// The member of this name; nil when there is none. Setting nil takes it away; a member that is null is there.
        public subscript(name: String) -> StateJSON? {
            get { values[ByteText(name)] }
            _modify { yield &values[ByteText(name)] }
        }

        /// Takes a member away, and gives its value.
        mutating func take(_ name: String) -> StateJSON? { values.removeValue(forKey: ByteText(name)) }
    }

    /// A number of JSON, as the text that it is: none is too large, and none loses a digit. Two are equal when their texts are.
    public struct Number: Sendable, Hashable, CustomStringConvertible {
        /// `-12`, `0.1` or `1e400`.
        public let text: String

        /// Nil when the text is no number of JSON (RFC 8259): `01`, `.5`, `nan`.
        public init?(_ text: String) {
            guard let first = text.utf8.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first),
                let last = text.utf8.last, (0x30...0x39).contains(last), JSONText.isValue(Array(text.utf8))
            else { return nil }
            self.text = text
        }

        /// A whole number.
        public init(_ number: some BinaryInteger) { text = String(number) }

        /// Nil for one that is not finite, which JSON has no form for.
        public init?(_ number: Double) {
            guard number.isFinite else { return nil }
            text = number.description
        }

        /// - Parameter text: known to be a number.
        init(checked text: String) { self.text = text }

        /// The number, when it is written without fraction and exponent and fits; nil otherwise.
        public var int: Int? { Int(text) }
        /// The nearest double; nil when it is beyond all of them.
        public var double: Double? { Double(text).flatMap { $0.isFinite ? $0 : nil } }

        public var description: String { text }
    }
}

extension StateJSON.Object: ExpressibleByDictionaryLiteral {
    /// Of members with the same name the last counts.
    public init(dictionaryLiteral elements: (String, StateJSON)...) {
        for (name, value) in elements { self[name] = value }
    }
}

extension StateJSON {
    /// The text; nil when it is none.
    public var string: String? { if case .string(let text) = self { text } else { nil } }
    /// `true` or `false`; nil when it is neither.
    public var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    /// The whole number; nil when it is none, is written with a fraction or an exponent, or does not fit.
    public var int: Int? { if case .number(let number) = self { number.int } else { nil } }
    /// The nearest double; nil when it is no number, or beyond all doubles.
    public var double: Double? { if case .number(let number) = self { number.double } else { nil } }

    /// A whole number.
    public init(_ number: Int) { self = .number(Number(number)) }
    /// A text.
    public init(_ text: String) { self = .string(text) }
    /// `true` or `false`.
    public init(_ bool: Bool) { self = .bool(bool) }
}

extension StateJSON: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int) { self = .number(Number(value)) }
    /// A number; null for one that is not finite.
    public init(floatLiteral value: Double) { self = Number(value).map { .number($0) } ?? .null }
    /// `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An array.
    public init(arrayLiteral elements: StateJSON...) { self = .array(elements) }
    /// An object. Of members with the same name the last counts.
    public init(dictionaryLiteral elements: (String, StateJSON)...) {
        var members = Object()
        for (name, value) in elements { members[name] = value }
        self = .object(members)
    }
}
