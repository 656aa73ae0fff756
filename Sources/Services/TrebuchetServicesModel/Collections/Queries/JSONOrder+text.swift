internal import TrebuchetWire

/// The order of values as canonical JSON text, nil for a missing one. Values are decoded only where their texts do not decide.
extension JSONOrder {
    package static func kind(_ text: UnsafeRawBufferPointer?) -> Kind {
        switch text?.first {
        case nil, UInt8(ascii: "n"): .null
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .bool
        case UInt8(ascii: "\""): .text
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "{"): .object
        default: .number
        }
    }

    /// As ``compare(_:_:)`` of two values.
    static func compare(_ one: UnsafeRawBufferPointer?, _ other: UnsafeRawBufferPointer?) -> Int {
        guard let one, let other else { return compareKinds(kind(one), kind(other)) }
        let (left, right) = (kind(one), kind(other))
        guard left == right else { return compareKinds(left, right) }
        switch left {
        case .null: return 0
        // "false" comes before "true".
        case .bool: return CanonicalJSON.compareBytes(one, other)
        case .number: return compareNumbers(one, other)
        case .text:
            return CanonicalJSON.compareNames(CanonicalJSON.inside(one), CanonicalJSON.inside(other))
        case .array, .object:
            if one.hasSameBytes(other) { return 0 }
            return compare(JSONValue(canonical: one), JSONValue(canonical: other))
        }
    }

    /// As ``areEqual(_:_:)`` of two values.
    ///
    /// - Parameter isExact: whether neither value has a number that may have two texts.
    static func areEqual(
        _ one: UnsafeRawBufferPointer?, _ other: UnsafeRawBufferPointer?, isExact: Bool
    ) -> Bool {
        guard let one, let other else { return kind(one) == kind(other) }
        if one.hasSameBytes(other) { return true }
        guard !isExact else { return false }
        let kind = kind(one)
        guard kind == self.kind(other), kind == .number || kind == .array || kind == .object else {
            return false
        }
        return areEqualValues(one, other)
    }

    /// As ``comparePlaces(_:_:)`` of two values.
    static func comparePlaces(_ one: UnsafeRawBufferPointer?, _ other: UnsafeRawBufferPointer?) -> Int {
        guard let one, let other else { return compareKinds(kind(one), kind(other)) }
        let (left, right) = (kind(one), kind(other))
        guard left == right else { return compareKinds(left, right) }
        switch left {
        case .array, .object: return 0
        case .text where one.count > maximumTextLength || other.count > maximumTextLength:
            return CanonicalJSON.compareNames(
                CanonicalJSON.prefix(CanonicalJSON.inside(one), decodedBytes: maximumTextLength),
                CanonicalJSON.prefix(CanonicalJSON.inside(other), decodedBytes: maximumTextLength))
        default: return compare(one, other)
        }
    }

    /// Returns the part of a number or string that counts for the sort position, as ``placing(_:)``; nil for other values.
    package static func placing(text: UnsafeRawBufferPointer?) -> JSONValue? {
        guard let text else { return nil }
        switch kind(text) {
        case .number: return JSONValue(canonical: text)
        case .text:
            let inside = CanonicalJSON.inside(text)
            let isLong = inside.count > maximumTextLength
            let start = isLong ? CanonicalJSON.prefix(inside, decodedBytes: maximumTextLength) : inside
            return .string(CanonicalJSON.string(start))
        case .null, .bool, .array, .object: return nil
        }
    }

    private static func compareKinds(_ one: Kind, _ other: Kind) -> Int {
        one.rawValue - other.rawValue
    }

    private static func compareNumbers(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer)
        -> Int
    {
        if let left = JSONNumber.int(one), let right = JSONNumber.int(other) {
            return left < right ? -1 : left > right ? 1 : 0
        }
        return compare(try? JSONValue.scalar(one), try? JSONValue.scalar(other))
    }
}
