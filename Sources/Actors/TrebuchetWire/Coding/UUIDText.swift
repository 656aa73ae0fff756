internal import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// UUIDs as text with hyphens. Eight digits are processed at a time, one byte of a word for each.
enum UUIDText {
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// Appends the UUID in quotes, in the form of `uuidString`.
    static func append(_ value: UUID, to buffer: inout ByteBuffer) {
        withUnsafeBytes(of: value.uuid) { bytes in
            buffer.append(count: 38) { start in
                let target = UnsafeMutableRawPointer(start)
                func eight(_ at: Int) -> UInt64 {
                    digits(ofBytes: bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self))
                }
                let (second, third) = (eight(4), eight(8))
                start[0] = 0x22
                target.storeBytes(of: eight(0), toByteOffset: 1, as: UInt64.self)
                start[9] = 0x2D
                target.storeBytes(of: UInt32(truncatingIfNeeded: second), toByteOffset: 10, as: UInt32.self)
                start[14] = 0x2D
                target.storeBytes(of: UInt32(truncatingIfNeeded: second >> 32), toByteOffset: 15, as: UInt32.self)
                start[19] = 0x2D
                target.storeBytes(of: UInt32(truncatingIfNeeded: third), toByteOffset: 20, as: UInt32.self)
                start[24] = 0x2D
                target.storeBytes(of: UInt32(truncatingIfNeeded: third >> 32), toByteOffset: 25, as: UInt32.self)
                target.storeBytes(of: eight(12), toByteOffset: 29, as: UInt64.self)
                start[37] = 0x22
            }
        }
    }

    /// Parses a UUID with digits of either case; nil for invalid text.
    static func bytes(_ text: UnsafeRawBufferPointer) -> uuid_t? {
        guard text.count == 36, text[8] == 0x2D, text[13] == 0x2D, text[18] == 0x2D, text[23] == 0x2D else {
            return nil
        }
        func four(_ at: Int) -> UInt64 {
            UInt64(UInt32(littleEndian: text.loadUnaligned(fromByteOffset: at, as: UInt32.self)))
        }
        func eight(_ at: Int) -> UInt64 {
            UInt64(littleEndian: text.loadUnaligned(fromByteOffset: at, as: UInt64.self))
        }
        guard let first = bytes(ofDigits: eight(0)), let second = bytes(ofDigits: four(9) | four(14) << 32),
            let third = bytes(ofDigits: four(19) | four(24) << 32), let fourth = bytes(ofDigits: eight(28))
        else { return nil }
        // Both types are sixteen bytes without padding.
        return unsafeBitCast((first, second, third, fourth), to: uuid_t.self)
    }

    /// Returns the eight digits of four bytes, the lowest byte first.
    @inline(__always)
    private static func digits(ofBytes bytes: UInt32) -> UInt64 {
        var word = UInt64(UInt32(littleEndian: bytes))
        word = (word | word << 16) & 0x0000_FFFF_0000_FFFF
        word = (word | word << 8) & 0x00FF_00FF_00FF_00FF
        let halves = word >> 4 & 0x000F_000F_000F_000F | (word & 0x000F_000F_000F_000F) << 8
        let letters = (halves &+ ones &* 6) >> 4 & ones
        return (halves &+ ones &* 0x30 &+ letters &* 7).littleEndian
    }

    /// Returns the value of eight digits, or nil if one of them is invalid.
    @inline(__always)
    private static func bytes(ofDigits digits: UInt64) -> UInt32? {
        // Letters have bit 6 set, and start at 1.
        let halves = (digits & (ones &* 0x0F)) &+ (digits >> 6 & ones) &* 9
        let letters = (halves &+ ones &* 6) >> 4 & ones
        // Converting back to lowercase digits must give the input.
        guard halves & (ones &* 0xF0) == 0,
            halves &+ ones &* 0x30 &+ letters &* 39 == digits | letters &* 0x20
        else { return nil }
        var word = (halves << 4 | halves >> 8) & 0x00FF_00FF_00FF_00FF
        word = (word | word >> 8) & 0x0000_FFFF_0000_FFFF
        word = word | word >> 16
        return UInt32(truncatingIfNeeded: word).littleEndian
    }
}
