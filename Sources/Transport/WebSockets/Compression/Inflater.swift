internal import Bytes
internal import CZlib

/// A raw DEFLATE decompressor for messages (RFC 7692 §7.2.2). Confined to one thread.
final class Inflater {
    /// The zlib state. It is behind a pointer, because zlib does not allow it to move; freed in `deinit`.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    /// The minimum growth of the output. A small message that expands to a large one is stopped at the limit, step by step.
    private static let step = 16 << 10

    init(windowBits: Int = 15) {
        stream.initialize(to: z_stream())
        let result = inflateInit2_(
            stream, Int32(-windowBits), ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(result == Z_OK, "zlib: \(result); out of memory or incompatible library version")
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Appends the decompressed message and passes each piece to `check`. It produces at most one byte more than `limit`.
    /// `resetting` drops the context of earlier messages.
    func inflate(
        _ bytes: UnsafeRawBufferPointer, resetting: Bool, limit: Int, into target: inout ByteBuffer,
        check: (UnsafeRawBufferPointer) -> ProtocolViolation?
    ) -> ProtocolViolation? {
        if resetting { inflateReset(stream) }
        if let violation = feed(bytes, limit, &target, check) { return violation }
        // The end of an empty block, which the sender has removed.
        let tail: [UInt8] = [0, 0, 0xFF, 0xFF]
        if let violation = tail.withUnsafeBytes({ feed($0, limit, &target, check) }) { return violation }
        // zlib's state: 128 means between two blocks; the low bits count the unused bits of the last byte.
        return stream.pointee.data_type & 0xFF == 128 ? nil : .badCompression
    }

    private func feed(
        _ bytes: UnsafeRawBufferPointer, _ limit: Int, _ target: inout ByteBuffer,
        _ check: (UnsafeRawBufferPointer) -> ProtocolViolation?
    ) -> ProtocolViolation? {
        // zlib declares the input as mutable, but does not change it.
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: Bytef.self).baseAddress)
        stream.pointee.avail_in = UInt32(bytes.count)
        while true {
            let before = target.count
            let room = min(limit + 1 - before, max(before, Self.step))
            var result = Z_OK
            target.append(count: room) { output in
                stream.pointee.next_out = output
                stream.pointee.avail_out = UInt32(room)
                result = CZlib.inflate(stream, Z_SYNC_FLUSH)
            }
            target.truncate(to: before + room - Int(stream.pointee.avail_out))
            guard target.count <= limit else { return .messageTooBig }
            if let violation = check(UnsafeRawBufferPointer(rebasing: target.bytes[before...])) { return violation }
            switch result {
            case Z_OK: break
            // No progress without more input or output space; there is output space.
            case Z_BUF_ERROR: return nil
            // A sender may set the final-block bit; the next block starts a new stream with the same window.
            case Z_STREAM_END: inflateResetKeep(stream)
            default: return .badCompression
            }
            if stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 { return nil }
        }
    }
}
