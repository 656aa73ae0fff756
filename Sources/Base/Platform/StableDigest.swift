/// A digest that is the same in every process (FNV-1a). It distinguishes values, but does not resist deliberate collisions.
package struct StableDigest {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func combine(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    package mutating func combine(_ bytes: UnsafeRawBufferPointer) { for byte in bytes { combine(byte) } }

    package mutating func combine(_ number: UInt64) {
        withUnsafeBytes(of: number.littleEndian) { combine($0) }
    }

    package mutating func combine(_ text: String) {
        combine(UInt64(text.utf8.count))
        for byte in text.utf8 { combine(byte) }
    }
}
