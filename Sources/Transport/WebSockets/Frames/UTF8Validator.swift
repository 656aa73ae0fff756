/// An incremental UTF-8 validator (RFC 3629; RFC 6455 §8.1). It detects an invalid byte in the piece that contains it, wherever
/// the text is split.
package struct UTF8Validator: Sendable {
    /// The number of continuation bytes that the current scalar still needs.
    private var needed: UInt8 = 0
    /// The range of the next continuation byte. After some lead bytes it is narrower, which excludes overlong forms (E0, F0),
    /// surrogates (ED) and values beyond U+10FFFF (F4).
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    package init() {}

    /// True if the text so far ends with a complete scalar.
    package var isComplete: Bool { needed == 0 }

    /// Validates the next bytes. Returns false at the first byte that is invalid in its position.
    package mutating func validate(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        let count = bytes.count
        var at = 0
        while at < count {
            if needed == 0 {
                at += Self.countASCII(base + at, count - at)
                while count - at >= 4 {
                    let length = Self.lengthOfCharacter(base.loadUnaligned(fromByteOffset: at, as: UInt32.self))
                    if length == 0 { break }
                    at += length
                }
                guard at < count else { return true }
            }
            let byte = base.load(fromByteOffset: at, as: UInt8.self)
            if needed == 0, byte < 0x80 { continue }
            guard consume(byte) else { return false }
            at += 1
        }
        return true
    }

    @inline(__always)
    private mutating func consume(_ byte: UInt8) -> Bool {
        if needed > 0 {
            guard byte >= lowest, byte <= highest else { return false }
            needed &-= 1
            lowest = 0x80
            highest = 0xBF
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: needed = 1
        case 0xE0:
            needed = 2
            lowest = 0xA0
        case 0xED:
            needed = 2
            highest = 0x9F
        case 0xE1...0xEF: needed = 2
        case 0xF0:
            needed = 3
            lowest = 0x90
        case 0xF1...0xF3: needed = 3
        case 0xF4:
            needed = 3
            highest = 0x8F
        default: return false
        }
        return true
    }

    /// Returns the length of the scalar at the start of a word in memory order: two to four; 0 for ASCII and for invalid bytes.
    @inline(__always)
    private static func lengthOfCharacter(_ word: UInt32) -> Int {
        let word = word.littleEndian
        if word & 0xC0_C0F0 == 0x80_80E0 {
            // Excludes E0 before bytes below A0, and ED before bytes above 9F.
            let range = word & 0x200F
            return range == 0 || range == 0x200D ? 0 : 3
        }
        if word & 0xC0E0 == 0x80C0 { return word & 0x1E == 0 ? 0 : 2 }
        guard word & 0xC0C0_C0F8 == 0x8080_80F0 else { return 0 }
        // The top five bits of the scalar: at least U+10000 and at most U+10FFFF.
        let first = (word & 0x07) << 2 | (word >> 12) & 0x03
        return first &- 1 < 16 ? 4 : 0
    }

    /// Returns the number of leading ASCII bytes, tested 32 at a time.
    @inline(__always)
    private static func countASCII(_ base: UnsafeRawPointer, _ count: Int) -> Int {
        let high: UInt64 = 0x8080_8080_8080_8080
        var at = 0
        while count - at >= 32 {
            let words = base.loadUnaligned(fromByteOffset: at, as: SIMD4<UInt64>.self)
            guard (words[0] | words[1] | words[2] | words[3]) & high == 0 else { break }
            at += 32
        }
        while count - at >= 8 {
            let set = base.loadUnaligned(fromByteOffset: at, as: UInt64.self).littleEndian & high
            guard set == 0 else { return at + set.trailingZeroBitCount / 8 }
            at += 8
        }
        while at < count, base.load(fromByteOffset: at, as: UInt8.self) < 0x80 { at += 1 }
        return at
    }
}
