/// The mask of a client's payload (RFC 6455 §5.3): byte i is XORed with byte i mod 4 of the key.
package enum Masking {
    /// Masks or unmasks in place, and tells whether any byte of the result is not ASCII: text of ASCII alone needs no further
    /// look.
    ///
    /// `key` is the key as it lies in memory; `offset` the number of the payload's bytes that came before these.
    @inline(__always)
    @discardableResult
    package static func apply(
        _ key: UInt32, offset: Int = 0, to bytes: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let base = bytes.baseAddress else { return false }
        return apply(key, offset: offset, UnsafeRawBufferPointer(bytes), to: base)
    }

    /// The same from one place to another, or in place: the two are the same then, and else do not overlap. 32 bytes at a time, which is as
    /// many as can be stored.
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

    /// The key for bytes that begin `offset` bytes into the payload.
    @inline(__always)
    static func rotate(_ key: UInt32, by offset: Int) -> UInt32 {
        let bits = UInt32(truncatingIfNeeded: offset & 3) &* 8
        let little = key.littleEndian
        return (little &>> bits | little &<< (32 &- bits) & (bits == 0 ? 0 : .max)).littleEndian
    }
}
