internal import Bytes
internal import CZlib

/// A raw DEFLATE compressor whose output ends on a byte, as RFC 7692 §7.2.1 wants it. Confined to one thread.
final class Deflater {
    /// Behind a pointer, since zlib does not let it move; freed in `deinit`.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    init(level: Int, windowBits: Int) {
        stream.initialize(to: z_stream())
        let result = deflateInit2_(
            stream, Int32(level), Z_DEFLATED, Int32(-windowBits), 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        precondition(result == Z_OK, "zlib: \(result); out of memory, or another version than it was built for")
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Appends `bytes` compressed, without the 00 00 FF FF at its end. `resetting` forgets what came before.
    /// There must be bytes: of nothing, zlib makes nothing twice. `expected` is how much it is at first given room for.
    func deflate(
        _ bytes: UnsafeRawBufferPointer, resetting: Bool, into target: inout ByteBuffer, expected: Int? = nil
    ) {
        precondition(!bytes.isEmpty, "nothing is not compressed")
        if resetting { deflateReset(stream) }
        // zlib takes the input as mutable and does not change it.
        stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: Bytef.self).baseAddress)
        stream.pointee.avail_in = UInt32(bytes.count)
        // zlib gives its bound for another way of ending.
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
            // Full to the brim: there may be more.
        } while stream.pointee.avail_out == 0
        target.truncate(to: target.count - 4)
    }
}
