/// Walking through the parts of an array or object.
extension JSONCursor {
    /// The name of the next member of an object whose brace was taken, with the colon behind it; nil at the end.
    @inline(__always)
    package mutating func name(_ isFirst: inout Bool) throws(EnvelopeError) -> ByteRange? {
        if isFirst {
            isFirst = false
            if take(0x7D) { return nil }
        } else if !take(0x2C) {
            guard take(0x7D) else { throw error("expected ',' or '}'") }
            return nil
        }
        let name = try string()
        try expect(0x3A)
        return name
    }

    /// Whether another element of an array follows, whose bracket was taken; at the end that bracket is taken too.
    @inline(__always)
    package mutating func hasElement(_ isFirst: inout Bool) throws(EnvelopeError) -> Bool {
        if isFirst {
            isFirst = false
            return !take(0x5D)
        }
        if take(0x2C) { return true }
        guard take(0x5D) else { throw error("expected ',' or ']'") }
        return false
    }

    /// The bytes of a range that this cursor gave.
    @inline(__always)
    package func bytes(_ range: ByteRange) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(range.offset), count: Int(range.count))
    }

    /// The text of a string that this cursor gave the range of.
    package func text(_ range: ByteRange) -> String { JSONString.text(bytes(range), isEscaped: range.isEscaped) }
}
