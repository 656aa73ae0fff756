package import Bytes

/// Strings of JSON: out of a message, and into one.
package enum JSONString {
    /// The text of a string whose escapes have been checked; `bytes` are what stands between its quotes.
    package static func text(_ bytes: UnsafeRawBufferPointer, isEscaped: Bool) -> String {
        isEscaped ? String(decoding: unescaped(bytes), as: UTF8.self) : String(decoding: bytes, as: UTF8.self)
    }

    /// The bytes that a string with checked escapes stands for.
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

    /// Writes a string with its quotes, escaping what must be.
    package static func append(_ text: String, to buffer: inout ByteBuffer) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0), to: &buffer) }
    }

    /// Writes UTF-8 text as a string with its quotes, escaping what must be.
    package static func append(_ text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer) {
        buffer.reserve(text.count + 2)
        buffer.append(0x22)
        var start = 0
        for index in 0..<text.count {
            let byte = text[index]
            if byte >= 0x20, byte != 0x22, byte != 0x5C { continue }
            buffer.append(UnsafeRawBufferPointer(rebasing: text[start..<index]))
            start = index + 1
            appendEscape(byte, to: &buffer)
        }
        buffer.append(UnsafeRawBufferPointer(rebasing: text[start...]))
        buffer.append(0x22)
    }

    /// Bytes that a string has in JSON, with its quotes and escapes.
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
