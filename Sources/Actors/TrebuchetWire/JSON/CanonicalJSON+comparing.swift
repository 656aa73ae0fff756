/// Comparison of canonical texts in one pass, without decoding them.
extension CanonicalJSON {
    /// Returns the index of the first byte in which two texts differ, or the length of the shorter one.
    package static func firstDifference(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
        let both = min(one.count, other.count)
        var at = 0
        while at &+ 8 <= both,
            one.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                == other.loadUnaligned(fromByteOffset: at, as: UInt64.self)
        {
            at &+= 8
        }
        while at < both, one[at] == other[at] { at &+= 1 }
        return at
    }

    /// Returns the start of the escape that contains an index behind its backslash, else the index.
    static func startOfEscape(around at: Int, in text: UnsafeRawBufferPointer) -> Int {
        for start in stride(from: at - 1, through: max(0, at - 5), by: -1) where text[start] == 0x5C {
            guard start == at - 1 || text[start + 1] == UInt8(ascii: "u") else { continue }
            var first = start
            while first > 0, text[first - 1] == 0x5C { first -= 1 }
            // The last of an even number of backslashes is itself escaped.
            if (start - first) & 1 == 0 { return start }
        }
        return at
    }

    /// Returns the first byte of the decoded text from an index on, where a character or an escape begins. Canonical text escapes
    /// only characters of one byte.
    static func decodedByte(at index: Int, _ text: UnsafeRawBufferPointer) -> UInt8 {
        guard text[index] == 0x5C else { return text[index] }
        switch text[index + 1] {
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "t"): return 0x09
        case UInt8(ascii: "u"): return hexadecimal(text[index + 4]) << 4 | hexadecimal(text[index + 5])
        case let byte: return byte
        }
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 {
        digit <= UInt8(ascii: "9") ? digit & 15 : (digit & 15) + 9
    }

    /// Returns the beginning of a string's text that decodes to at most so many bytes, without a partial character.
    ///
    /// - Parameter inside: the text between the quotes.
    package static func prefix(_ inside: UnsafeRawBufferPointer, decodedBytes count: Int) -> UnsafeRawBufferPointer {
        var (at, decoded) = (0, 0)
        while at < inside.count, decoded < count {
            at += inside[at] != 0x5C ? 1 : inside[at + 1] == UInt8(ascii: "u") ? 6 : 2
            decoded += 1
        }
        while at > 0, at < inside.count, inside[at] & 0xC0 == 0x80 { at -= 1 }
        return UnsafeRawBufferPointer(rebasing: inside[..<at])
    }
}
