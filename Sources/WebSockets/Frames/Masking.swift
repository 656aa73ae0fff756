/// The mask of a client's payload (RFC 6455 §5.3): byte i is XORed with byte i mod 4 of the key.
package enum Masking {
    /// Masks or unmasks in place, 32 bytes at a time, and tells whether any byte of the result is not ASCII: text of
    /// ASCII alone needs no further look.
    ///
    /// `key` is the key as it lies in memory; `offset` the number of the payload's bytes that came before these.
    @inline(__always)
    @discardableResult
    package static func apply(
        _ key: UInt32, offset: Int = 0, to bytes: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard var at = bytes.baseAddress else { return false }
        let end = at + bytes.count
        let turned = rotate(key, by: offset)
        let wide = UInt64(turned) << 32 | UInt64(turned)
        let vector = SIMD4<UInt64>(repeating: wide)
        var seen = SIMD4<UInt64>(repeating: 0)
        while end - at >= 32 {
            let plain = at.loadUnaligned(as: SIMD4<UInt64>.self) ^ vector
            seen |= plain
            at.storeBytes(of: plain, as: SIMD4<UInt64>.self)
            at += 32
        }
        var rest = seen[0] | seen[1] | seen[2] | seen[3]
        while end - at >= 8 {
            let plain = at.loadUnaligned(as: UInt64.self) ^ wide
            rest |= plain
            at.storeBytes(of: plain, as: UInt64.self)
            at += 8
        }
        var shifted = wide.littleEndian
        while at < end {
            let plain = at.load(as: UInt8.self) ^ UInt8(truncatingIfNeeded: shifted)
            rest |= UInt64(plain)
            at.storeBytes(of: plain, as: UInt8.self)
            shifted >>= 8
            at += 1
        }
        return rest & 0x8080_8080_8080_8080 != 0
    }

    /// The key for bytes that begin `offset` bytes into the payload.
    @inline(__always)
    static func rotate(_ key: UInt32, by offset: Int) -> UInt32 {
        let bits = UInt32(truncatingIfNeeded: offset & 3) &* 8
        let little = key.littleEndian
        return (little &>> bits | little &<< (32 &- bits) & (bits == 0 ? 0 : .max)).littleEndian
    }
}
