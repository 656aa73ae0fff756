/// Reading the parts of an array or object.
extension JSONCursor {
    /// Reads the name of the next member of an object, after its opening brace, and the colon behind it; nil at the end.
    @inline(__always)
    package mutating func name(_ isFirst: inout Bool) throws(EnvelopeError) -> ByteRange? {
        if isFirst {
            isFirst = false
            if consume(0x7D) { return nil }
        } else if !consume(0x2C) {
            guard consume(0x7D) else { throw error("expected ',' or '}'") }
            return nil
        }
        let name = try string()
        try expect(0x3A)
        return name
    }

    /// Returns whether another element of an array follows, after its opening bracket; at the end it reads the closing bracket.
    @inline(__always)
    package mutating func hasElement(_ isFirst: inout Bool) throws(EnvelopeError) -> Bool {
        if isFirst {
            isFirst = false
            return !consume(0x5D)
        }
        if consume(0x2C) { return true }
        guard consume(0x5D) else { throw error("expected ',' or ']'") }
        return false
    }

    /// Returns the bytes of a range from this cursor.
    @inline(__always)
    package func bytes(_ range: ByteRange) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(range.offset), count: Int(range.count))
    }

    /// Returns the text of a string with a range from this cursor.
    package func text(_ range: ByteRange) -> String { JSONString.text(bytes(range), isEscaped: range.isEscaped) }
}
