package import Bytes
internal import Glibc

/// A `streamData` message in two parts: one that each subscriber has for itself, and one that is written once for all.
package enum StreamDataParts {
    private static let prefix: StaticString = #"{"type":"streamData","payload":{"streamID":""#

    package static var prefixCount: Int { prefix.utf8CodeUnitCount }

    /// What comes before the streamID.
    package static func appendPrefix(into buffer: inout ByteBuffer) { buffer.append(prefix) }

    /// What comes after the streamID; `data` is JSON.
    package static func appendSuffix(
        sequence: UInt64, data: UnsafeRawBufferPointer, version: ProtocolVersion, into buffer: inout ByteBuffer
    ) {
        buffer.append(#"","sequenceNumber":"# as StaticString)
        buffer.append(decimal: sequence)
        if version == .v3 {
            appendTimestamp(version, into: &buffer)
            buffer.append(#","data":"# as StaticString)
            buffer.append(data)
        } else {
            buffer.append(#","data":""# as StaticString)
            Base64.encode(data, into: &buffer)
            buffer.append(0x22)
            appendTimestamp(version, into: &buffer)
        }
        buffer.append("}}" as StaticString)
    }

    private static func appendTimestamp(_ version: ProtocolVersion, into buffer: inout ByteBuffer) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        buffer.append(#","timestamp":""# as StaticString)
        ISO8601.append(
            seconds: Int64(now.tv_sec), milliseconds: version == .v3 ? Int(now.tv_nsec / 1_000_000) : nil, to: &buffer)
        buffer.append(0x22)
    }
}
