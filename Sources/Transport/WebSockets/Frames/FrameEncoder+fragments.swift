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
        var frames = ByteBuffer()
        let payload = UnsafeRawBufferPointer(rebasing: buffer.bytes[(opening.start + opening.room)...])
        appendFragments(
            payload, size: size, opcode: opcode, isCompressed: isCompressed, nextKey: nextKey, to: &frames)
        buffer.truncate(to: opening.start)
        buffer.append(frames.bytes)
    }

    /// Appends the frames of a message in fragments of `size` bytes, or those of the rest of a message as `.continuation`.
    static func appendFragments(
        _ payload: UnsafeRawBufferPointer, size: Int, opcode: WebSocketOpcode, isCompressed: Bool = false,
        nextKey: (() -> UInt32)? = nil, to frames: inout ByteBuffer
    ) {
        frames.reserve(payload.count + (payload.count / size + 1) * FrameHeader.maximumLength)
        var sent = 0
        repeat {
            let count = min(size, payload.count - sent)
            append(
                sent == 0 ? opcode : .continuation,
                UnsafeRawBufferPointer(rebasing: payload[sent..<(sent + count)]),
                isFinal: sent + count == payload.count, isCompressed: isCompressed && sent == 0,
                maskingKey: nextKey?(), to: &frames)
            sent += count
        } while sent < payload.count
    }
}
