package import Bytes

/// Writes frames into a buffer (RFC 6455 §5.2).
///
/// A payload is written in place, behind space for its header, which is filled in when the length is known. A message is
/// therefore never copied for framing, unless its estimated length was in another length class.
package enum FrameEncoder {
    /// A frame whose payload is being written.
    package struct Opening {
        /// The offset of the frame in the buffer, and the space reserved for its header.
        let start: Int
        let room: Int
    }

    /// Returns the length of a header in bytes.
    @inline(__always)
    package static func headerLength(payload: Int, isMasked: Bool) -> Int {
        let length = payload <= FrameHeader.shortPayload ? 2 : payload <= FrameHeader.mediumPayload ? 4 : 10
        return isMasked ? length + 4 : length
    }

    /// Reserves space for the header of a payload of about `expecting` bytes, which is appended next.
    @inline(__always)
    package static func open(_ buffer: inout ByteBuffer, expecting: Int, isMasked: Bool) -> Opening {
        let opening = Opening(start: buffer.count, room: headerLength(payload: expecting, isMasked: isMasked))
        buffer.append(count: opening.room) { _ in }
        return opening
    }

    /// Returns the number of payload bytes written since `open`.
    @inline(__always)
    package static func payloadLength(_ opening: Opening, in buffer: borrowing ByteBuffer) -> Int {
        buffer.count - opening.start - opening.room
    }

    /// Fills in the header for all bytes written since `open`, plus `following` bytes that are sent after this buffer. It masks
    /// the payload if there is a key.
    @inline(__always)
    package static func close(
        _ opening: Opening, in buffer: inout ByteBuffer, opcode: WebSocketOpcode, isFinal: Bool = true,
        isCompressed: Bool = false, maskingKey: UInt32? = nil, following: Int = 0
    ) {
        let written = payloadLength(opening, in: buffer)
        let needed = headerLength(payload: written + following, isMasked: maskingKey != nil)
        if needed != opening.room { move(opening, in: &buffer, to: needed) }
        let target = buffer.mutableBytes.baseAddress.unsafelyUnwrapped + opening.start
        put(
            FrameHeader(
                isFinal: isFinal, isCompressed: isCompressed, opcode: opcode, isMasked: maskingKey != nil,
                maskingKey: maskingKey ?? 0, payloadLength: written + following), at: target)
        guard let maskingKey else { return }
        Masking.apply(maskingKey, to: UnsafeMutableRawBufferPointer(start: target + needed, count: written))
    }

    /// Appends a complete frame.
    package static func append(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer, isFinal: Bool = true,
        isCompressed: Bool = false, maskingKey: UInt32? = nil, to buffer: inout ByteBuffer
    ) {
        let opening = open(&buffer, expecting: payload.count, isMasked: maskingKey != nil)
        buffer.append(payload)
        close(
            opening, in: &buffer, opcode: opcode, isFinal: isFinal, isCompressed: isCompressed, maskingKey: maskingKey)
    }

    /// Adjusts the header space when the payload's length class differs from the estimate.
    @inline(never)
    private static func move(_ opening: Opening, in buffer: inout ByteBuffer, to needed: Int) {
        if needed > opening.room {
            buffer.insertGap(at: opening.start + opening.room, count: needed - opening.room)
            return
        }
        let payload = payloadLength(opening, in: buffer)
        let bytes = buffer.mutableBytes
        UnsafeMutableRawBufferPointer(rebasing: bytes[(opening.start + needed)...]).copyMemory(
            from: UnsafeRawBufferPointer(rebasing: bytes[(opening.start + opening.room)...]))
        buffer.truncate(to: opening.start + needed + payload)
    }

    @inline(__always)
    private static func put(_ header: FrameHeader, at target: UnsafeMutableRawPointer) {
        let bits: UInt8 = (header.isFinal ? 0x80 : 0) | (header.isCompressed ? 0x40 : 0)
        target.storeBytes(of: bits | header.opcode.rawValue, as: UInt8.self)
        let mask: UInt8 = header.isMasked ? 0x80 : 0
        var at = 2
        if header.payloadLength <= FrameHeader.shortPayload {
            target.storeBytes(
                of: mask | UInt8(truncatingIfNeeded: header.payloadLength), toByteOffset: 1, as: UInt8.self)
        } else if header.payloadLength <= FrameHeader.mediumPayload {
            target.storeBytes(of: mask | 126, toByteOffset: 1, as: UInt8.self)
            let length = UInt16(truncatingIfNeeded: header.payloadLength).bigEndian
            target.storeBytes(of: length, toByteOffset: 2, as: UInt16.self)
            at = 4
        } else {
            target.storeBytes(of: mask | 127, toByteOffset: 1, as: UInt8.self)
            target.storeBytes(of: UInt64(header.payloadLength).bigEndian, toByteOffset: 2, as: UInt64.self)
            at = 10
        }
        if header.isMasked { target.storeBytes(of: header.maskingKey, toByteOffset: at, as: UInt32.self) }
    }
}
