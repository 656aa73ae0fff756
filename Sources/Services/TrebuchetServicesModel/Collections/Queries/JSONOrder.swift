#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif
internal import Platform

/// A total order of JSON values, missing ones first. Numbers are compared as numbers, strings by their bytes.
package enum JSONOrder {
    /// The kind of a value; kinds are compared before values.
    package enum Kind: Int, Comparable {
        case null, bool, number, text, array, object

        package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
    }

    /// Returns a negative number when the first value comes first, a positive one when the second does.
    package static func compare(_ one: JSONValue?, _ other: JSONValue?) -> Int {
        switch (one ?? .null, other ?? .null) {
        case (.integer(let one), .integer(let other)): sign(one, other)
        case (.integer(let one), .number(let other)): compare(one, other)
        case (.number(let one), .integer(let other)): -compare(other, one)
        case (.number(let one), .number(let other)): sign(one, other)
        case (.exact, .number), (.exact, .integer), (.exact, .exact), (.number, .exact), (.integer, .exact):
            compare(rounded(one), rounded(other))
        case (.string(let one), .string(let other)): compare(one, other)
        case (.bool(let one), .bool(let other)): sign(one ? 1 : 0, other ? 1 : 0)
        case (.array(let one), .array(let other)): compare(one, other)
        case (.object(let one), .object(let other)): compare(one, other)
        case (let one, let other): sign(kind(one), kind(other))
        }
    }

    /// Returns whether `compare` returns 0. Objects are compared by their texts.
    static func areEqual(_ one: JSONValue?, _ other: JSONValue?) -> Bool {
        switch (one ?? .null, other ?? .null) {
        case (.string(let one), .string(let other)): one.utf8.count == other.utf8.count && compare(one, other) == 0
        case (.array(let one), .array(let other)):
            one.count == other.count && zip(one, other).allSatisfy { areEqual($0, $1) }
        case (.object(let one), .object(let other)):
            one == other
                || (one.hasWideNumbers || other.hasWideNumbers) && one.count == other.count
                    && zip(one, other).allSatisfy { one, other in
                        one.name.isSameBytes(as: other.name) && areEqual(one.value, other.value)
                    }
        case (.array, _), (.object, _), (_, .array), (_, .object): false
        case (let one, let other): compare(one, other) == 0
        }
    }

    /// Returns whether two values are both numbers or both strings.
    static func areComparable(_ one: JSONValue?, _ other: JSONValue) -> Bool {
        guard let one else { return false }
        let kind = kind(one)
        return kind == self.kind(other) && (kind == .number || kind == .text)
    }

    package static func kind(_ value: JSONValue) -> Kind {
        switch value {
        case .null: .null
        case .bool: .bool
        case .integer, .number, .exact: .number
        case .string: .text
        case .array: .array
        case .object: .object
        }
    }

    /// Returns one representation for all values that `compare` treats as equal: 3 and 3.0 are one number.
    static func identity(_ value: JSONValue?) -> JSONValue {
        switch value {
        case nil: .null
        case .number(let number)?: Int64(exactly: number).map { .integer($0) } ?? .number(number)
        case .array(let elements)?: .array(elements.map { identity($0) })
        case .object(let members)? where members.hasWideNumbers:
            .object(JSONObject(members.map { (key: $0.name, value: identity($0.value)) }))
        case let value?: value
        }
    }

    /// Returns a number as collections have it.
    private static func rounded(_ value: JSONValue?) -> JSONValue? {
        if case .exact(let number)? = value { Double(number.text).map { JSONValue($0) } } else { value }
    }

    // MARK: Sort positions

    /// The number of bytes of a string that count for the sort position.
    static let maximumTextLength = 512

    /// Returns the part of a value that counts for the sort position: the beginning of a long string, only the kind of an array
    /// or object. So a cursor is small.
    package static func placing(_ value: JSONValue?) -> JSONValue {
        switch value ?? .null {
        case .string(let text) where text.utf8.count > maximumTextLength:
            .string(String(decoding: text.utf8.prefix(placingCount(text)), as: UTF8.self))
        case .array: .array([])
        case .object: .object(JSONObject())
        case let value: value
        }
    }

    /// Compares the sort positions of two values.
    static func comparePlaces(_ one: JSONValue?, _ other: JSONValue?) -> Int {
        switch (one ?? .null, other ?? .null) {
        case (.string(let one), .string(let other)): compare(one, other, placingCount(one), placingCount(other))
        case (.array, .array), (.object, .object): 0
        case (let one, let other): compare(one, other)
        }
    }

    /// Returns the number of bytes that count, without a partial character.
    private static func placingCount(_ text: String) -> Int {
        let bytes = text.utf8
        guard bytes.count > maximumTextLength else { return bytes.count }
        var end = bytes.index(bytes.startIndex, offsetBy: maximumTextLength)
        while bytes[end] & 0xC0 == 0x80 { end = bytes.index(before: end) }
        return bytes.distance(from: bytes.startIndex, to: end)
    }

    // MARK: Kinds

    private static func compare(_ integer: Int64, _ number: Double) -> Int {
        // Exact, because a double cannot represent all digits of the integer.
        if number.isNaN || number < -0x1p63 { return 1 }
        if number >= 0x1p63 { return -1 }
        let whole = number.rounded(.towardZero)
        let sign = sign(integer, Int64(whole))
        return sign != 0 ? sign : self.sign(whole, number)
    }

    private static func compare(_ one: [JSONValue], _ other: [JSONValue]) -> Int {
        for (left, right) in zip(one, other) {
            let sign = compare(left, right)
            if sign != 0 { return sign }
        }
        return sign(one.count, other.count)
    }

    private static func compare(_ one: JSONObject, _ other: JSONObject) -> Int {
        let (left, right) = (one.sorted, other.sorted)
        for (left, right) in zip(left, right) {
            let names = compare(left.name, right.name)
            if names != 0 { return names }
            let values = compare(left.value, right.value)
            if values != 0 { return values }
        }
        return sign(left.count, right.count)
    }

    static func compare(_ one: String, _ other: String) -> Int {
        compare(one, other, one.utf8.count, other.utf8.count)
    }

    /// Compares the first bytes of two strings.
    private static func compare(_ one: String, _ other: String, _ count: Int, _ otherCount: Int) -> Int {
        let both = min(count, otherCount)
        let order = one.utf8.withContiguousStorageIfAvailable { one in
            other.utf8.withContiguousStorageIfAvailable { other in
                both == 0 ? 0 : Int(memcmp(one.baseAddress!, other.baseAddress!, both))
            }
        }
        guard case let order?? = order else {
            let (one, other) = (one.utf8.prefix(count), other.utf8.prefix(otherCount))
            return one.elementsEqual(other) ? 0 : one.lexicographicallyPrecedes(other) ? -1 : 1
        }
        return order != 0 ? order : sign(count, otherCount)
    }

    private static func sign<Value: Comparable>(_ one: Value, _ other: Value) -> Int {
        one < other ? -1 : one > other ? 1 : 0
    }
}
