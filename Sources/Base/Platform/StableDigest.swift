/// A digest that is the same in every process (FNV-1a). It distinguishes values, but does not resist deliberate collisions.
package struct StableDigest {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func combine(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    package mutating func combine(_ bytes: UnsafeRawBufferPointer) { for byte in bytes { combine(byte) } }

    /// Combines bytes with another result than `combine(_:)`, and several times faster.
    package mutating func combine(words bytes: UnsafeRawBufferPointer) {
        let end = bytes.count & ~7
        for at in stride(from: 0, to: end, by: 8) {
            combine(word: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)))
        }
        var last = UInt64(bytes.count)
        for byte in bytes[end...] { last = last << 8 | UInt64(byte) }
        combine(word: last)
    }

    /// Mixes a word into the value. This is no protection against chosen words.
    private mutating func combine(word: UInt64) {
        value = (value ^ word) &* 0x9E37_79B9_7F4A_7C15
        value ^= value >> 32
    }

    package mutating func combine(_ number: UInt64) {
        withUnsafeBytes(of: number.littleEndian) { combine($0) }
    }

    package mutating func combine(_ text: String) {
        combine(UInt64(text.utf8.count))
        for byte in text.utf8 { combine(byte) }
    }
}
