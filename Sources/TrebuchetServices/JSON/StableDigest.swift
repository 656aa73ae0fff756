/// A digest that is the same in every process: it tells different values apart that nobody has made alike on purpose (FNV-1a).
struct StableDigest {
    private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func combine(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    mutating func combine(_ bytes: UnsafeRawBufferPointer) { for byte in bytes { combine(byte) } }

    mutating func combine(_ number: UInt64) {
        withUnsafeBytes(of: number.littleEndian) { combine($0) }
    }

    mutating func combine(_ text: String) {
        combine(UInt64(text.utf8.count))
        for byte in text.utf8 { combine(byte) }
    }

    mutating func combine(_ value: JSONValue) {
        switch value {
        case .null: combine(0 as UInt8)
        case .bool(let bool): combine(bool ? 1 : 2 as UInt8)
        case .integer(let integer):
            combine(3 as UInt8)
            combine(UInt64(bitPattern: integer))
        case .number(let number):
            combine(4 as UInt8)
            combine(number.bitPattern)
        case .string(let text):
            combine(5 as UInt8)
            combine(text)
        case .array(let elements):
            combine(6 as UInt8)
            combine(UInt64(elements.count))
            for element in elements { combine(element) }
        case .object(let members):
            combine(7 as UInt8)
            combine(members)
        }
    }

    mutating func combine(_ members: JSONObject) {
        combine(UInt64(members.count))
        for (name, value) in members.sorted {
            combine(name)
            combine(value)
        }
    }
}
