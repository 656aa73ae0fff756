extension JSONText {
    /// Returns a hash that is the same for all texts of a value, in the sense of `isEqual`; nil for invalid JSON. It represents a
    /// value whose text is not stored. The hash has a random seed in each process, so a peer cannot construct collisions.
    static func digest(_ text: UnsafeRawBufferPointer) -> Int? {
        var cursor = JSONCursor(text)
        var hasher = KeyedHasher()
        do throws(EnvelopeError) {
            try feed(&cursor, to: &hasher, 0)
            try cursor.expectEnd()
            return hasher.finalize()
        } catch {
            return nil
        }
    }

    private static func feed(_ cursor: inout JSONCursor, to hasher: inout KeyedHasher, _ depth: Int)
        throws(EnvelopeError)
    {
        let first = cursor.peek()
        switch first {
        case 0x7B, 0x5B:
            guard depth < JSONCursor.maximumDepth else { throw cursor.tooDeep() }
            cursor.at += 1
            hasher.combine(first)
            if first == 0x7B {
                try feedMembers(&cursor, to: &hasher, depth)
            } else {
                var isFirst = true
                while try cursor.hasElement(&isFirst) { try feed(&cursor, to: &hasher, depth + 1) }
                hasher.combine(UInt8(0x5D))
            }
        case 0x22:
            feed(JSONName(try cursor.string(), in: cursor), to: &hasher)
        default:
            let value = cursor.bytes(try cursor.value())
            if first == 0x2D || (0x30...0x39).contains(first) {
                JSONNumber.feed(value, to: &hasher)
            } else {
                hasher.combine(first)
            }
        }
    }

    private static func feed(_ string: JSONName, to hasher: inout KeyedHasher) {
        hasher.combine(UInt8(0x22))
        guard string.isEscaped else { return hasher.combine(string.bytes) }
        string.content.withUnsafeBytes { hasher.combine($0) }
    }

    /// Hashes members independently of their order, by the sum of their hashes.
    private static func feedMembers(
        _ cursor: inout JSONCursor, to hasher: inout KeyedHasher, _ depth: Int
    ) throws(EnvelopeError) {
        var sum = 0
        var count = 0
        var isFirst = true
        while let name = try cursor.name(&isFirst) {
            var member = hasher.fresh()
            feed(JSONName(name, in: cursor), to: &member)
            try feed(&cursor, to: &member, depth + 1)
            sum &+= member.finalize()
            count += 1
        }
        hasher.combine(count)
        hasher.combine(sum)
    }
}

extension JSONNumber {
    /// Hashes the value of a number: its digits without leading and trailing zeros, and the power of ten.
    static func feed(_ number: UnsafeRawBufferPointer, to hasher: inout KeyedHasher) {
        hasher.combine(UInt8(0x30))
        if var short = int(number) {
            var exponent = 0
            while short != 0, short % 10 == 0 {
                short /= 10
                exponent += 1
            }
            hasher.combine(short)
            return hasher.combine(exponent)
        }
        guard let parts = parts(number) else { return hasher.combine(number) }
        if parts.digits.count <= 18 {
            let digits = parts.digits.reduce(0) { $0 * 10 + Int($1 &- 0x30) }
            hasher.combine(parts.isNegative ? -digits : digits)
        } else {
            hasher.combine(UInt8(parts.isNegative ? 1 : 0))
            parts.digits.withUnsafeBytes { hasher.combine($0) }
        }
        hasher.combine(parts.exponent)
    }
}
