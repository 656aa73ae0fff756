extension JSONText {
    /// Returns whether two texts have the same value (RFC 6902, section 4.6). Numbers are compared by value, strings by content,
    /// and objects independently of the member order. False if either is not JSON.
    ///
    /// A member with a duplicate name counts twice.
    package static func isEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        var one = JSONCursor(one)
        var other = JSONCursor(other)
        do throws(EnvelopeError) {
            guard try isEqual(&one, &other, 0) else { return false }
            try one.expectEnd()
            try other.expectEnd()
            return true
        } catch {
            return false
        }
    }

    /// Moves both cursors past equal values; their positions after a difference are irrelevant.
    private static func isEqual(
        _ one: inout JSONCursor, _ other: inout JSONCursor, _ depth: Int
    ) throws(EnvelopeError) -> Bool {
        let first = one.peek()
        let second = other.peek()
        switch first {
        case 0x7B, 0x5B:
            guard first == second else { return false }
            guard depth < JSONCursor.maximumDepth else { throw one.tooDeep() }
            one.at += 1
            other.at += 1
            return first == 0x7B ? try hasEqualMembers(&one, &other, depth) : try hasEqualElements(&one, &other, depth)
        case 0x22:
            guard first == second else { return false }
            return JSONName(try one.string(), in: one) == JSONName(try other.string(), in: other)
        default:
            let (left, right) = (one.bytes(try one.value()), other.bytes(try other.value()))
            if left.hasSameBytes(right) { return true }
            return isNumber(first) && isNumber(second) && JSONNumber.isEqual(left, right)
        }
    }

    private static func isNumber(_ first: UInt8) -> Bool { first == 0x2D || (0x30...0x39).contains(first) }

    private static func hasEqualElements(
        _ one: inout JSONCursor, _ other: inout JSONCursor, _ depth: Int
    ) throws(EnvelopeError) -> Bool {
        var isFirst = true
        var isOtherFirst = true
        while true {
            let hasElement = try one.hasElement(&isFirst)
            guard try other.hasElement(&isOtherFirst) == hasElement else { return false }
            guard hasElement else { return true }
            guard try isEqual(&one, &other, depth + 1) else { return false }
        }
    }

    private static func hasEqualMembers(
        _ one: inout JSONCursor, _ other: inout JSONCursor, _ depth: Int
    ) throws(EnvelopeError) -> Bool {
        var isFirst = true
        var isOtherFirst = true
        // While the members are in the same order, no table is needed.
        while true {
            let name = try one.name(&isFirst)
            let otherName = try other.name(&isOtherFirst)
            guard let name, let otherName else { return name == nil && otherName == nil }
            if JSONName(name, in: one) == JSONName(otherName, in: other) {
                guard try isEqual(&one, &other, depth + 1) else { return false }
            } else {
                return try hasEqualRest(name, &one, otherName, &other, depth)
            }
        }
    }

    /// Compares the members from the first different name on, in any order.
    private static func hasEqualRest(
        _ name: ByteRange, _ one: inout JSONCursor, _ otherName: ByteRange, _ other: inout JSONCursor, _ depth: Int
    ) throws(EnvelopeError) -> Bool {
        var offsets: [JSONName: Int] = [:]
        var isFirst = false
        var next: ByteRange? = name
        while let name = next {
            guard offsets.updateValue(one.at, forKey: JSONName(name, in: one)) == nil else { return false }
            _ = try one.value(depth: depth + 1)
            next = try one.name(&isFirst)
        }
        next = otherName
        while let name = next {
            guard let offset = offsets.removeValue(forKey: JSONName(name, in: other)) else { return false }
            var value = one
            value.at = offset
            guard try isEqual(&value, &other, depth + 1) else { return false }
            next = try other.name(&isFirst)
        }
        return offsets.isEmpty
    }
}
