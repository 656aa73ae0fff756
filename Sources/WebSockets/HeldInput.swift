internal import Bytes

/// Bytes that were read from the network and wait because reading is paused. Exists while there are any.
final class HeldInput {
    private var buffer = ByteBuffer()
    /// How many of them have been handled.
    var consumed = 0

    init(_ bytes: UnsafeMutableRawBufferPointer) { append(bytes) }

    func append(_ bytes: UnsafeMutableRawBufferPointer) { buffer.append(UnsafeRawBufferPointer(bytes)) }

    /// Memory that it takes.
    var heldBytes: Int { buffer.capacity }

    var rest: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: buffer.mutableBytes[consumed...])
    }
}
