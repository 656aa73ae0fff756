/// A fast path for the two most frequent messages, calls and responses, in the form written by Trebuchet. They are recognized by
/// the constant text between their parts, without identifying each member.
extension ScannedEnvelope {
    /// Scans such a message; false for any difference. Then some properties may be set already.
    @inline(__always)
    mutating func scanKnown(_ message: UnsafeRawBufferPointer) -> Bool {
        var cursor = JSONCursor(message)
        if cursor.skip(#"{"type":"invocation","payload":{"callID":""#) { return scanCall(&cursor) }
        if cursor.skip(#"{"type":"response","payload":{"callID":""#) { return scanAnswer(&cursor) }
        return false
    }

    @inline(__always)
    private mutating func scanCall(_ cursor: inout JSONCursor) -> Bool {
        guard let callID = cursor.identifier(), cursor.skip(#"","actorID":""#), let actorID = cursor.plainText(),
            cursor.skip(#"","targetIdentifier":""#), let target = cursor.plainText(),
            actorID.count > 0, target.count > 0, cursor.skip(#"""#)
        else { return false }
        if cursor.skip(#","arguments":["#), !scanArguments(&cursor) { return false }
        if cursor.skip(#","timeoutMilliseconds":"#) {
            guard let number = cursor.shortNumber() else { return false }
            timeoutMilliseconds = number
        }
        guard cursor.skip("}}"), cursor.at == cursor.end else { return false }
        (kind, type) = (.invocation, ByteRange(9, 10))
        (self.callID, self.actorID, targetIdentifier) = (callID, actorID, target)
        return true
    }

    @inline(__always)
    private mutating func scanArguments(_ cursor: inout JSONCursor) -> Bool {
        if cursor.skip("]") { return true }
        do throws(EnvelopeError) {
            while arguments.count < Self.maximumArguments {
                arguments.append(try cursor.value(depth: 3))
                if cursor.consume(0x2C) { continue }
                return cursor.consume(0x5D)
            }
        } catch {}
        return false
    }

    @inline(__always)
    private mutating func scanAnswer(_ cursor: inout JSONCursor) -> Bool {
        guard let callID = cursor.identifier(), cursor.skip(#"""#) else { return false }
        if cursor.skip(#","result":"#) {
            do throws(EnvelopeError) {
                result = try cursor.value(depth: 2)
            } catch {
                return false
            }
        }
        guard cursor.skip("}}"), cursor.at == cursor.end else { return false }
        (kind, type) = (.response, ByteRange(9, 8))
        self.callID = callID
        return true
    }
}

extension JSONCursor {
    /// Skips exactly this text if it is next.
    @inline(__always)
    fileprivate mutating func skip(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard end &- at >= count, JSONString.isSame(base + at, text.utf8Start, count) else { return false }
        at &+= count
        return true
    }

    /// Returns the rest of a string without escapes, up to its closing quote; nil for other strings.
    @inline(__always)
    fileprivate mutating func plainText() -> ByteRange? {
        let start = at
        while at &+ 8 <= end {
            let special = JSONString.specialBytes(UnsafeRawPointer(base + at).loadUnaligned(as: UInt64.self))
            guard special == 0 else {
                at &+= special.trailingZeroBitCount >> 3
                return base[at] == 0x22 ? ByteRange(start, at &- start) : nil
            }
            at &+= 8
        }
        return nil
    }

    /// Returns the rest of a valid `callID`, up to its closing quote.
    @inline(__always)
    fileprivate mutating func identifier() -> ByteRange? {
        let start = at
        while at < end, base[at] != 0x22 {
            guard base[at] >= 0x20, base[at] <= 0x7E, base[at] != 0x5C else { return nil }
            at &+= 1
        }
        guard at > start, at &- start <= ScannedEnvelope.maximumIdentifierLength else { return nil }
        return ByteRange(start, at &- start)
    }

    /// Reads a number that consists only of a few digits.
    @inline(__always)
    fileprivate mutating func shortNumber() -> Int? {
        let start = at
        var value = 0
        while at < end, base[at] &- 0x30 < 10, at &- start < 15 {
            value = value &* 10 &+ Int(base[at] &- 0x30)
            at &+= 1
        }
        // Numbers have no leading zeros.
        return at > start && (base[start] != 0x30 || at == start &+ 1) ? value : nil
    }
}
