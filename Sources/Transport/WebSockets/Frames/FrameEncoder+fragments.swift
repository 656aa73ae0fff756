package import Bytes

extension FrameEncoder {
    /// Works like `close`, but divides the message into frames of at most `size` payload bytes (RFC 6455 §5.4).
    ///
    /// `nextKey` returns the masking key of each frame; nil for a server.
    package static func closeFragmented(
        _ opening: Opening, in buffer: inout ByteBuffer, opcode: WebSocketOpcode, size: Int,
        isCompressed: Bool = false, nextKey: (() -> UInt32)? = nil
    ) {
        let length = payloadLength(opening, in: buffer)
        guard length > size else {
            return close(
                opening, in: &buffer, opcode: opcode, isCompressed: isCompressed, maskingKey: nextKey?())
        }
        // The frames are built in another buffer and copied back. Only links that need small frames pay for this.
        var frames = ByteBuffer(capacity: length + (length / size + 1) * FrameHeader.maximumLength)
        let start = opening.start + opening.room
        var sent = 0
        while sent < length {
            let count = min(size, length - sent)
            append(
                sent == 0 ? opcode : .continuation,
                UnsafeRawBufferPointer(rebasing: buffer.bytes[(start + sent)..<(start + sent + count)]),
                isFinal: sent + count == length, isCompressed: isCompressed && sent == 0, maskingKey: nextKey?(),
                to: &frames)
            sent += count
        }
        buffer.truncate(to: opening.start)
        buffer.append(frames.bytes)
    }
}
