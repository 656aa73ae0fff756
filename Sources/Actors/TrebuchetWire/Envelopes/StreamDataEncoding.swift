package import Bytes

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A `streamData` message in two parts: one for each subscriber, and one that is encoded once for all.
package enum StreamDataEncoding {
    private static let prefix: StaticString = #"{"type":"streamData","payload":{"streamID":""#

    package static var prefixCount: Int { prefix.utf8CodeUnitCount }

    /// Appends the part before the `streamID`.
    package static func appendPrefix(into buffer: inout ByteBuffer) { buffer.append(prefix) }

    /// Appends the part after the `streamID`; `data` is JSON.
    package static func appendSuffix(
        sequence: UInt64, data: UnsafeRawBufferPointer, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"","sequenceNumber":"# as StaticString)
        buffer.append(decimal: sequence)
        appendTimestamp(into: &buffer)
        buffer.append(#","data":"# as StaticString)
        buffer.append(data)
        buffer.append("}}" as StaticString)
    }

    /// Returns the `data` in a suffix written by `appendSuffix`.
    package static func data(inSuffix suffix: UnsafeRawBufferPointer, sequence: UInt64) -> UnsafeRawBufferPointer {
        // Everything before it has a fixed length, except for the digits of the sequence number.
        let start =
            #"","sequenceNumber":"#.utf8.count + digits(sequence)
            + #","timestamp":"2026-01-01T00:00:00.000Z","data":"#.utf8.count
        return UnsafeRawBufferPointer(rebasing: suffix[start..<(suffix.count - 2)])
    }

    /// Returns the `patch` in a suffix written by `appendSuffix`.
    package static func patch(
        inSuffix suffix: UnsafeRawBufferPointer, sequence: UInt64, base: UInt64
    ) -> UnsafeRawBufferPointer {
        let start =
            #"","sequenceNumber":"#.utf8.count + digits(sequence)
            + #","timestamp":"2026-01-01T00:00:00.000Z","base":"#.utf8.count + digits(base) + #","patch":"#.utf8.count
        return UnsafeRawBufferPointer(rebasing: suffix[start..<(suffix.count - 2)])
    }

    /// Returns the base version of the patch in a suffix; nil for a suffix with the whole value, and for other text.
    package static func base(inSuffix suffix: UnsafeRawBufferPointer, sequence: UInt64) -> UInt64? {
        let start =
            #"","sequenceNumber":"#.utf8.count + digits(sequence)
            + #","timestamp":"2026-01-01T00:00:00.000Z""#.utf8.count
        let name = #","base":"#.utf8
        guard suffix.count > start + name.count, suffix[start..<(start + name.count)].elementsEqual(name) else {
            return nil
        }
        var base: UInt64 = 0
        for byte in suffix[(start + name.count)...] {
            guard (0x30...0x39).contains(byte) else { break }
            base = base &* 10 &+ UInt64(byte - 0x30)
        }
        return base
    }

    private static func digits(_ number: UInt64) -> Int {
        var digits = 1
        var rest = number
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        return digits
    }

    /// Appends the part after the `streamID` for subscribers that have the version `base`; `patch` is JSON.
    package static func appendSuffix(
        sequence: UInt64, patch: UnsafeRawBufferPointer, base: UInt64, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"","sequenceNumber":"# as StaticString)
        buffer.append(decimal: sequence)
        appendTimestamp(into: &buffer)
        buffer.append(#","base":"# as StaticString)
        buffer.append(decimal: base)
        buffer.append(#","patch":"# as StaticString)
        buffer.append(patch)
        buffer.append("}}" as StaticString)
    }

    private static func appendTimestamp(into buffer: inout ByteBuffer) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        buffer.append(#","timestamp":""# as StaticString)
        ISO8601.append(seconds: Int64(now.tv_sec), milliseconds: Int(now.tv_nsec / 1_000_000), to: &buffer)
        buffer.append(0x22)
    }
}
