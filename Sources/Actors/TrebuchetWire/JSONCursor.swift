#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A parser that moves through JSON text (RFC 8259) without building values.
///
/// It points into the message, which must outlive it: a cursor is used for one scan.
package struct JSONCursor {
    let base: UnsafePointer<UInt8>
    let end: Int
    package var at = 0

    /// The maximum nesting of values.
    package static let maximumDepth = 64

    package init(_ message: UnsafeRawBufferPointer) {
        // The base of an empty buffer may be nil; it is never dereferenced, because `end` is 0 then.
        base = message.baseAddress.map { $0.assumingMemoryBound(to: UInt8.self) } ?? UnsafePointer(bitPattern: 1)!
        end = message.count
    }

    package func error(_ text: String) -> EnvelopeError { EnvelopeError("\(text) at byte \(at)") }

    package func tooDeep() -> EnvelopeError { error("values nest deeper than \(Self.maximumDepth)") }

    // MARK: Marks

    /// Returns the next byte that is not white space; 0 at the end.
    @inline(__always)
    package mutating func peek() -> UInt8 {
        while at < end {
            let byte = base[at]
            if byte > 0x20 { return byte }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte == 0 ? 1 : byte }
            at += 1
        }
        return 0
    }

    @inline(__always)
    package mutating func consume(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        at += 1
        return true
    }

    @inline(__always)
    package mutating func expect(_ byte: UInt8) throws(EnvelopeError) {
        guard consume(byte) else { throw error("expected '\(Character(UnicodeScalar(byte)))'") }
    }

    /// Throws unless only white space follows.
    package mutating func expectEnd() throws(EnvelopeError) {
        guard peek() == 0, at == end else { throw error("text after the end of the message") }
    }

    // MARK: Strings

    /// Reads a string; the range excludes the quotes.
    @inline(__always)
    package mutating func string() throws(EnvelopeError) -> ByteRange {
        try expect(0x22)
        let start = at
        while true {
            // Eight bytes at a time, if none is a quote, a backslash or a control character.
            while at &+ 8 <= end {
                let word = UnsafeRawPointer(base + at).loadUnaligned(as: UInt64.self)
                let special = JSONString.specialBytes(word)
                guard special == 0 else {
                    at &+= special.trailingZeroBitCount >> 3
                    break
                }
                at &+= 8
            }
            guard at < end else { throw error("the text ends within a string") }
            let byte = base[at]
            if byte == 0x22 {
                at &+= 1
                return ByteRange(start, at - 1 - start)
            }
            if byte == 0x5C { return try escapedString(from: start) }
            if byte < 0x20 { throw error("a control character in a string") }
            at &+= 1
        }
    }

    private mutating func escapedString(from start: Int) throws(EnvelopeError) -> ByteRange {
        while at < end {
            let byte = base[at]
            if byte == 0x22 {
                at += 1
                return ByteRange(start, at - 1 - start, isEscaped: true)
            }
            guard byte >= 0x20 else { throw error("a control character in a string") }
            at += 1
            if byte == 0x5C { try skipEscape() }
        }
        throw error("the text ends within a string")
    }

    /// Validates an escape after its backslash.
    private mutating func skipEscape() throws(EnvelopeError) {
        guard at < end else { throw error("the text ends within a string") }
        let byte = base[at]
        at += 1
        switch byte {
        case 0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74: return
        case 0x75: break
        default: throw error("an invalid escape sequence")
        }
        let unit = try hexUnit()
        guard (0xD800...0xDFFF).contains(unit) else { return }
        guard unit < 0xDC00, at + 1 < end, base[at] == 0x5C, base[at + 1] == 0x75 else {
            throw error("half of a surrogate pair")
        }
        at += 2
        guard (0xDC00...0xDFFF).contains(try hexUnit()) else { throw error("half of a surrogate pair") }
    }

    private mutating func hexUnit() throws(EnvelopeError) -> UInt16 {
        guard at + 4 <= end else { throw error("the text ends within a string") }
        var unit: UInt16 = 0
        for offset in 0..<4 {
            guard let digit = Self.hexDigit(base[at + offset]) else { throw error("\\u needs four hexadecimal digits") }
            unit = unit << 4 | digit
        }
        at += 4
        return unit
    }

    static func hexDigit(_ byte: UInt8) -> UInt16? {
        switch byte {
        case 0x30...0x39: UInt16(byte - 0x30)
        case 0x41...0x46: UInt16(byte - 0x41 + 10)
        case 0x61...0x66: UInt16(byte - 0x61 + 10)
        default: nil
        }
    }

    // MARK: Values

    /// Skips and validates a value of any kind, and returns its range.
    @inline(__always)
    package mutating func value(depth: Int = 0) throws(EnvelopeError) -> ByteRange {
        let first = peek()
        let start = at
        switch first {
        case 0x22: _ = try string()
        case 0x7B, 0x5B: try container(depth: depth + 1)
        case 0x2D, 0x30...0x39: try number()
        default: try literal(first)
        }
        return ByteRange(start, at - start)
    }

    /// Skips and validates an object or an array, with all that is in it.
    ///
    /// - Parameter depth: the number of containers that are open then, this one included.
    private mutating func container(depth: Int) throws(EnvelopeError) {
        // For each open container, the innermost one in the lowest bit: whether it is an object. `maximumDepth` is 64.
        var objects: UInt64 = 0
        var open = 0
        while true {
            // At the bracket of a container.
            guard depth &+ open <= Self.maximumDepth else { throw tooDeep() }
            objects = objects << 1 | (base[at] == 0x7B ? 1 : 0)
            open &+= 1
            at &+= 1
            var isValueNext = peek() != Self.bracket(objects)
            while true {
                if isValueNext {
                    if objects & 1 == 1 {
                        _ = try string()
                        try expect(0x3A)
                    }
                    let first = peek()
                    if first == 0x22 {
                        _ = try string()
                    } else if first == 0x7B || first == 0x5B {
                        break
                    } else if first &- 0x30 < 10 || first == 0x2D {
                        try number()
                    } else {
                        try literal(first)
                    }
                    isValueNext = false
                } else {
                    // Behind the last value of a container.
                    guard consume(Self.bracket(objects)) else {
                        throw error("expected ',' or '\(Character(UnicodeScalar(Self.bracket(objects))))'")
                    }
                    objects >>= 1
                    open &-= 1
                    if open == 0 { return }
                }
                isValueNext = consume(0x2C)
            }
        }
    }

    /// The closing bracket of the innermost container.
    @inline(__always)
    private static func bracket(_ objects: UInt64) -> UInt8 { objects & 1 == 1 ? 0x7D : 0x5D }

    @inline(__always)
    private mutating func digits() -> Int {
        let start = at
        while at < end, base[at] &- 0x30 < 10 { at &+= 1 }
        return at - start
    }

    @inline(__always)
    mutating func number() throws(EnvelopeError) {
        if base[at] == 0x2D { at += 1 }
        let isZero = at < end && base[at] == 0x30
        let whole = digits()
        guard whole > 0, !isZero || whole == 1 else { throw error("not a number") }
        if at < end, base[at] == 0x2E {
            at += 1
            guard digits() > 0 else { throw error("not a number") }
        }
        if at < end, base[at] | 0x20 == 0x65 {
            at += 1
            if at < end, base[at] == 0x2B || base[at] == 0x2D { at += 1 }
            guard digits() > 0 else { throw error("not a number") }
        }
    }

    private mutating func literal(_ first: UInt8) throws(EnvelopeError) {
        switch first {
        case 0x74: try word("true")
        case 0x66: try word("false")
        case 0x6E: try word("null")
        case 0: throw error("the text ends before a value")
        default: throw error("expected a value")
        }
    }

    private mutating func word(_ text: StaticString) throws(EnvelopeError) {
        let count = text.utf8CodeUnitCount
        guard at + count <= end, memcmp(base + at, text.utf8Start, count) == 0 else { throw error("expected a value") }
        at += count
    }
}
