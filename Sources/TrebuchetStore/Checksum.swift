internal import CZlib

/// A CRC-32 over a whole row.
struct Checksum {
    private var sum = crc32(0, nil, 0)

    var value: Int { Int(sum) }

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        sum = crc32(sum, base.assumingMemoryBound(to: UInt8.self), uInt(bytes.count))
    }

    mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    /// Adds the eight bytes of a number, the lowest first.
    mutating func add(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { add($0) } }

    static func of(
        _ namespace: UnsafeRawBufferPointer, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) -> Int {
        var sum = Checksum()
        for part in [namespace, name, value] { sum.add(part) }
        return sum.value
    }

    static func of(_ namespace: String, _ name: String, _ value: [UInt8]) -> Int {
        var sum = Checksum()
        sum.add(namespace)
        sum.add(name)
        value.withUnsafeBytes { sum.add($0) }
        return sum.value
    }

    /// Returns the checksum of a row with these numbers and bytes.
    static func of(_ numbers: UInt64..., bytes: UnsafeRawBufferPointer) -> Int {
        var sum = Checksum()
        for number in numbers { sum.add(number) }
        sum.add(bytes)
        return sum.value
    }
}
