extension JSONText {
    /// A number that texts of the same value share, as `isEqual` sees it, and others do not: the hash is seeded anew in each
    /// process, so nobody can look for two values that have the same. Nil for what is no JSON.
    ///
    /// It stands for a value whose text is not kept.
    static func digest(_ text: UnsafeRawBufferPointer) -> Int? {
        var cursor = JSONCursor(text)
        var hasher = Hasher()
        do throws(EnvelopeError) {
            try feed(&cursor, to: &hasher, 0)
            try cursor.expectEnd()
            return hasher.finalize()
        } catch {
            return nil
        }
    }

    private static func feed(_ cursor: inout JSONCursor, to hasher: inout Hasher, _ depth: Int) throws(EnvelopeError) {
        let first = cursor.peek()
        switch first {
        case 0x7B, 0x5B:
            guard depth < JSONCursor.deepest else { throw cursor.tooDeep() }
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

    private static func feed(_ string: JSONName, to hasher: inout Hasher) {
        hasher.combine(UInt8(0x22))
        guard string.isEscaped else {
            hasher.combine(string.bytes.count)
            return hasher.combine(bytes: string.bytes)
        }
        string.content.withUnsafeBytes {
            hasher.combine($0.count)
            hasher.combine(bytes: $0)
        }
    }

    /// Members count whatever their order: what is combined is their sum.
    private static func feedMembers(
        _ cursor: inout JSONCursor, to hasher: inout Hasher, _ depth: Int
    ) throws(EnvelopeError) {
        var sum = 0
        var count = 0
        var isFirst = true
        while let name = try cursor.name(&isFirst) {
            var member = Hasher()
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
    /// What a number is worth: its digits without zeros at either end, and the power of ten that they are multiplied by.
    static func feed(_ number: UnsafeRawBufferPointer, to hasher: inout Hasher) {
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
        guard let parts = parts(number) else { return hasher.combine(bytes: number) }
        if parts.digits.count <= 18 {
            let digits = parts.digits.reduce(0) { $0 * 10 + Int($1 &- 0x30) }
            hasher.combine(parts.isNegative ? -digits : digits)
        } else {
            hasher.combine(parts.isNegative)
            hasher.combine(parts.digits)
        }
        hasher.combine(parts.exponent)
    }
}
