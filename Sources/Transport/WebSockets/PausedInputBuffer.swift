internal import Bytes

/// Input that waits because reading is paused. It exists only while there is such input.
final class PausedInputBuffer {
    private var buffer = ByteBuffer()
    /// The number of bytes that have been handled.
    var consumed = 0

    init(_ bytes: UnsafeMutableRawBufferPointer) { append(bytes) }

    func append(_ bytes: UnsafeMutableRawBufferPointer) { buffer.append(UnsafeRawBufferPointer(bytes)) }

    /// The memory of the buffer in bytes.
    var bufferedBytes: Int { buffer.capacity }

    var rest: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: buffer.mutableBytes[consumed...])
    }
}
