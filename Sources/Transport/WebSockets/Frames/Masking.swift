/// The masking of a client's payload (RFC 6455 §5.3): byte i is XORed with byte i mod 4 of the key.
package enum Masking {
    /// Masks or unmasks in place. Returns whether any resulting byte is not ASCII: pure ASCII text needs no further validation.
    ///
    /// `key` is in memory order; `offset` is the number of earlier bytes of the payload.
    @inline(__always)
    @discardableResult
    package static func apply(
        _ key: UInt32, offset: Int = 0, to bytes: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let base = bytes.baseAddress else { return false }
        return apply(key, offset: offset, UnsafeRawBufferPointer(bytes), to: base)
    }

    /// Masks or unmasks from one buffer to another, or in place; partial overlap is not allowed. It processes 32 bytes at a time,
    /// the maximum for one store.
    @inline(__always)
    static func apply(
        _ key: UInt32, offset: Int, _ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer
    ) -> Bool {
        guard var from = source.baseAddress else { return false }
        var to = target
        let end = from + source.count
        let turned = rotate(key, by: offset)
        let wide = UInt64(turned) << 32 | UInt64(turned)
        let vector = SIMD4<UInt64>(repeating: wide)
        var seen = SIMD4<UInt64>(repeating: 0)
        while end - from >= 32 {
            let plain = from.loadUnaligned(as: SIMD4<UInt64>.self) ^ vector
            seen |= plain
            to.storeBytes(of: plain, as: SIMD4<UInt64>.self)
            from += 32
            to += 32
        }
        var rest = seen[0] | seen[1] | seen[2] | seen[3]
        while end - from >= 8 {
            let plain = from.loadUnaligned(as: UInt64.self) ^ wide
            rest |= plain
            to.storeBytes(of: plain, as: UInt64.self)
            from += 8
            to += 8
        }
        var shifted = wide.littleEndian
        while from < end {
            let plain = from.load(as: UInt8.self) ^ UInt8(truncatingIfNeeded: shifted)
            rest |= UInt64(plain)
            to.storeBytes(of: plain, as: UInt8.self)
            shifted >>= 8
            from += 1
            to += 1
        }
        return rest & 0x8080_8080_8080_8080 != 0
    }

    /// Returns the key for bytes at `offset` within the payload.
    @inline(__always)
    static func rotate(_ key: UInt32, by offset: Int) -> UInt32 {
        let bits = UInt32(truncatingIfNeeded: offset & 3) &* 8
        let little = key.littleEndian
        return (little &>> bits | little &<< (32 &- bits) & (bits == 0 ? 0 : .max)).littleEndian
    }
}
