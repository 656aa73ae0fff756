internal import CZlib

/// A CRC-32 over a whole row.
struct Checksum {
    private var sum = crc32(0, nil, 0)

    var value: Int { Int(sum) }

    mutating func update(with bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        sum = crc32(sum, base.assumingMemoryBound(to: UInt8.self), uInt(bytes.count))
    }

    mutating func update(with text: String) {
        var text = text
        text.withUTF8 { update(with: UnsafeRawBufferPointer($0)) }
    }

    /// Adds the eight bytes of a number, the lowest first.
    mutating func update(with number: UInt64) { withUnsafeBytes(of: number.littleEndian) { update(with: $0) } }

    static func of(
        _ namespace: UnsafeRawBufferPointer, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) -> Int {
        var sum = Checksum()
        for part in [namespace, name, value] { sum.update(with: part) }
        return sum.value
    }

    static func of(_ namespace: String, _ name: String, _ value: [UInt8]) -> Int {
        var sum = Checksum()
        sum.update(with: namespace)
        sum.update(with: name)
        value.withUnsafeBytes { sum.update(with: $0) }
        return sum.value
    }

    /// Returns the checksum of a row with these numbers and bytes.
    static func of(_ numbers: UInt64..., bytes: UnsafeRawBufferPointer) -> Int {
        var sum = Checksum()
        for number in numbers { sum.update(with: number) }
        sum.update(with: bytes)
        return sum.value
    }
}
