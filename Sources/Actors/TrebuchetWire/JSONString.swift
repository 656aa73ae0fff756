package import Bytes

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Parsing and writing of JSON strings.
package enum JSONString {
    /// Returns the text of a string with validated escapes; `bytes` are the bytes between its quotes.
    package static func text(_ bytes: UnsafeRawBufferPointer, isEscaped: Bool) -> String {
        isEscaped ? String(decoding: unescaped(bytes), as: UTF8.self) : String(decoding: bytes, as: UTF8.self)
    }

    @inline(__always)
    static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var at = 0
        while at &+ 8 <= bytes.count {
            guard bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 else {
                return false
            }
            at &+= 8
        }
        var rest: UInt8 = 0
        while at < bytes.count {
            rest |= bytes[at]
            at &+= 1
        }
        return rest < 0x80
    }

    /// Returns whether `count` bytes are equal; `count` is at least one. Names are short, for which a call of `memcmp` is slow.
    @inline(__always)
    static func isSame(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ count: Int) -> Bool {
        if count >= 8 {
            let end = count &- 8
            // Constant if the text is, as between the parts of an envelope.
            guard count <= 48 else { return memcmp(left, right, count) == 0 }
            if count > 16 {
                var at = 8
                while at < end {
                    guard isSameWord(left, right, at) else { return false }
                    at &+= 8
                }
            }
            return isSameWord(left, right, 0) && isSameWord(left, right, end)
        }
        if count >= 4 {
            let end = count &- 4
            return left.loadUnaligned(as: UInt32.self) == right.loadUnaligned(as: UInt32.self)
                && left.loadUnaligned(fromByteOffset: end, as: UInt32.self)
                    == right.loadUnaligned(fromByteOffset: end, as: UInt32.self)
        }
        for at in 0..<count
        where left.load(fromByteOffset: at, as: UInt8.self) != right.load(fromByteOffset: at, as: UInt8.self) {
            return false
        }
        return true
    }

    @inline(__always)
    private static func isSameWord(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ at: Int) -> Bool {
        left.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            == right.loadUnaligned(fromByteOffset: at, as: UInt64.self)
    }

    /// Returns the unescaped bytes of a string with validated escapes.
    static func unescaped(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count)
        var at = 0
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            guard byte == 0x5C else {
                out.append(byte)
                continue
            }
            let escape = bytes[at]
            at += 1
            switch escape {
            case 0x62: out.append(0x08)
            case 0x66: out.append(0x0C)
            case 0x6E: out.append(0x0A)
            case 0x72: out.append(0x0D)
            case 0x74: out.append(0x09)
            case 0x75: appendUnicodeEscape(bytes, &at, to: &out)
            default: out.append(escape)
            }
        }
        return out
    }

    private static func appendUnicodeEscape(_ bytes: UnsafeRawBufferPointer, _ at: inout Int, to out: inout [UInt8]) {
        var value = UInt32(unit(bytes, at))
        at += 4
        if (0xD800...0xDBFF).contains(value) {
            let low = UInt32(unit(bytes, at + 2))
            at += 6
            value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = UnicodeScalar(value) else { return }
        out.append(contentsOf: UTF8.encode(scalar)!)
    }

    private static func unit(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt16 {
        (0..<4).reduce(0) { $0 << 4 | (JSONCursor.hexDigit(bytes[at + $1]) ?? 0) }
    }

    /// Appends a string with quotes and escapes.
    package static func append(_ text: String, to buffer: inout ByteBuffer) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0), to: &buffer) }
    }

    /// Appends UTF-8 text as a string with quotes and escapes.
    package static func append(_ text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
        buffer.reserve(text.count + 2)
        buffer.append(0x22)
        var start = 0
        var index = 0
        while true {
            index = plainEnd(text, from: index)
            guard index < text.count else { break }
            buffer.append(UnsafeRawBufferPointer(rebasing: text[start..<index]))
            appendEscape(text[index], to: &buffer)
            index += 1
            start = index
        }
        buffer.append(UnsafeRawBufferPointer(rebasing: text[start...]))
        buffer.append(0x22)
    }

    /// Returns the index of the first byte from `start` on that must be escaped, or the end of the text.
    @inline(__always)
    private static func plainEnd(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index &+ 8 <= text.count {
            let special = specialBytes(text.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            guard special == 0 else { return index &+ special.trailingZeroBitCount >> 3 }
            index &+= 8
        }
        while index < text.count, text[index] >= 0x20, text[index] != 0x22, text[index] != 0x5C { index &+= 1 }
        return index
    }

    /// Returns a word with the high bit set for each byte that is a quote, a backslash or below 0x20. Bits above the first one
    /// may be wrong because of a borrow; only the lowest is used.
    @inline(__always)
    static func specialBytes(_ word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = 0x8080_8080_8080_8080
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5C)
        let isQuote = (quote &- ones) & ~quote
        let isBackslash = (backslash &- ones) & ~backslash
        let isControl = (word &- ones &* 0x20) & ~word
        return (isQuote | isBackslash | isControl) & high
    }

    /// Returns the size of a string in JSON, with its quotes and escapes.
    package static func byteCount(_ text: String) -> Int {
        var text = text
        return text.withUTF8 { bytes in
            bytes.reduce(2) { count, byte in
                switch byte {
                case 0x22, 0x5C, 0x0A, 0x0D, 0x09: count + 2
                case 0..<0x20: count + 6
                default: count + 1
                }
            }
        }
    }

    private static func appendEscape(_ byte: UInt8, to buffer: inout ByteBuffer) {
        switch byte {
        case 0x22: buffer.append("\\\"" as StaticString)
        case 0x5C: buffer.append("\\\\" as StaticString)
        case 0x0A: buffer.append("\\n" as StaticString)
        case 0x0D: buffer.append("\\r" as StaticString)
        case 0x09: buffer.append("\\t" as StaticString)
        default:
            buffer.append("\\u00" as StaticString)
            for digit in [byte >> 4, byte & 15] { buffer.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
        }
    }
}
