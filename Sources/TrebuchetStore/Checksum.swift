internal import CZlib

/// A CRC-32 over all of an entry.
enum Checksum {
    static func of(
        _ namespace: UnsafeRawBufferPointer, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) -> Int {
        var sum = crc32(0, nil, 0)
        for part in [namespace, name, value] { sum = add(part, to: sum) }
        return Int(sum)
    }

    static func of(_ namespace: String, _ name: String, _ value: [UInt8]) -> Int {
        var (namespace, name) = (namespace, name)
        return namespace.withUTF8 { namespace in
            name.withUTF8 { name in
                value.withUnsafeBytes { of(UnsafeRawBufferPointer(namespace), UnsafeRawBufferPointer(name), $0) }
            }
        }
    }

    private static func add(_ bytes: UnsafeRawBufferPointer, to sum: uLong) -> uLong {
        guard let base = bytes.baseAddress else { return sum }
        return crc32(sum, base.assumingMemoryBound(to: UInt8.self), uInt(bytes.count))
    }
}
