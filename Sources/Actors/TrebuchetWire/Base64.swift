package import Bytes

/// Base64 with padding (RFC 4648, section 4), in which protocol versions 1 and 2 wrap values.
package enum Base64 {
    private static let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    package static func encode(_ bytes: UnsafeRawBufferPointer, into buffer: inout ByteBuffer) {
        let digits = alphabet.utf8Start
        let count = (bytes.count + 2) / 3 * 4
        buffer.append(count: count) { target in
            var at = 0
            var index = 0
            while index < bytes.count {
                let left = bytes.count - index
                let word =
                    UInt32(bytes[index]) << 16 | (left > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
                    | (left > 2 ? UInt32(bytes[index + 2]) : 0)
                target[at] = digits[Int(word >> 18)]
                target[at + 1] = digits[Int(word >> 12 & 63)]
                target[at + 2] = left > 1 ? digits[Int(word >> 6 & 63)] : 0x3D
                target[at + 3] = left > 2 ? digits[Int(word & 63)] : 0x3D
                index += 3
                at += 4
            }
        }
    }

    /// Decodes text. Returns false for invalid base64; then the appended bytes are meaningless.
    package static func decode(_ text: UnsafeRawBufferPointer, into buffer: inout ByteBuffer) -> Bool {
        guard text.count % 4 == 0 else { return false }
        buffer.reserve(text.count / 4 * 3)
        var index = 0
        while index < text.count {
            let isLast = index + 4 == text.count
            let padding = isLast ? (text[index + 3] == 0x3D ? (text[index + 2] == 0x3D ? 2 : 1) : 0) : 0
            var word: UInt32 = 0
            for offset in 0..<(4 - padding) {
                guard let value = value(of: text[index + offset]) else { return false }
                word |= UInt32(value) << UInt32(18 - 6 * offset)
            }
            buffer.append(UInt8(truncatingIfNeeded: word >> 16))
            if padding < 2 { buffer.append(UInt8(truncatingIfNeeded: word >> 8)) }
            if padding < 1 { buffer.append(UInt8(truncatingIfNeeded: word)) }
            index += 4
        }
        return true
    }

    @inline(__always)
    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case 0x41...0x5A: digit - 0x41
        case 0x61...0x7A: digit - 0x61 + 26
        case 0x30...0x39: digit - 0x30 + 52
        case 0x2B: 62
        case 0x2F: 63
        default: nil
        }
    }
}
