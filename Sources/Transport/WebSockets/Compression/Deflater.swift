internal import Bytes
internal import CZlib

/// A raw DEFLATE compressor whose output ends at a byte boundary, as RFC 7692 §7.2.1 requires. Confined to one thread.
final class Deflater {
    /// The zlib state. It is behind a pointer, because zlib does not allow it to move; freed in `deinit`.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    init(level: Int, windowBits: Int) {
        stream.initialize(to: z_stream())
        let result = deflateInit2_(
            stream, Int32(level), Z_DEFLATED, Int32(-windowBits), 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        precondition(result == Z_OK, "zlib: \(result); out of memory or incompatible library version")
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Drops the context of earlier messages.
    func reset() { deflateReset(stream) }

    /// Appends the compressed `bytes`, without the trailing 00 00 FF FF.
    ///
    /// `bytes` must not be empty, because zlib produces no output for a second empty flush. `resetting` drops the context of
    /// earlier messages. `isLast` is false for a piece of a message that others follow; its output has the trailing bytes.
    /// `expected` is the initial size of the output space.
    func deflate(
        _ bytes: UnsafeRawBufferPointer, resetting: Bool, isLast: Bool = true, into target: inout ByteBuffer,
        expected: Int? = nil
    ) {
        precondition(!bytes.isEmpty, "the input must not be empty")
        if resetting { deflateReset(stream) }
        // zlib declares the input as mutable, but does not change it.
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: Bytef.self).baseAddress)
        stream.pointee.avail_in = UInt32(bytes.count)
        // zlib's bound applies to another flush mode.
        var room = expected ?? Int(deflateBound(stream, UInt(bytes.count))) + 16
        repeat {
            let before = target.count
            target.append(count: room) { output in
                stream.pointee.next_out = output
                stream.pointee.avail_out = UInt32(room)
                CZlib.deflate(stream, Z_SYNC_FLUSH)
            }
            target.truncate(to: before + room - Int(stream.pointee.avail_out))
            room = 4096
            // The output space is full: there may be more output.
        } while stream.pointee.avail_out == 0
        if isLast { target.truncate(to: target.count - 4) }
    }
}
