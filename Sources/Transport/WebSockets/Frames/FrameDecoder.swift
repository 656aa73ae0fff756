/// A decoder of frame headers that rejects everything RFC 6455 §5 forbids.
///
/// It keeps no state between calls. Each error is detected at the first byte that shows it.
package struct FrameDecoder: Sendable {
    /// The result of decoding a frame header.
    package enum Result: Equatable {
        /// More bytes are needed; the available ones contain no error.
        case incomplete
        /// The header and its length in bytes.
        case header(FrameHeader, length: Int)
        case violation(ProtocolViolation)
    }

    /// The mask bit of every frame from the peer (0x80 from clients, 0 from servers).
    private let maskBit: UInt8
    let maximumPayload: Int
    /// True if compression was negotiated: the first frame of a message may have RSV1.
    private let allowsCompression: Bool

    /// Creates a decoder for the local `role`: a server accepts only masked frames, a client only unmasked ones.
    package init(role: WebSocketRole, maximumPayload: Int, allowsCompression: Bool = false) {
        self.allowsCompression = allowsCompression
        maskBit = role == .server ? 0x80 : 0
        self.maximumPayload = maximumPayload
    }

    @inline(__always)
    package func decode(_ bytes: UnsafeRawBufferPointer) -> Result {
        // The fast path for nearly all frames: unfragmented text or binary messages below 64 KiB.
        guard bytes.count >= 8, let base = bytes.baseAddress else { return decodeCarefully(bytes) }
        let first = base.load(as: UInt8.self)
        let second = base.load(fromByteOffset: 1, as: UInt8.self)
        guard first == 0x81 || first == 0x82, second & 0x80 == maskBit else { return decodeCarefully(bytes) }
        var length = Int(second & 0x7F)
        var at = 2
        if length > FrameHeader.shortPayload {
            guard length == 126 else { return decodeCarefully(bytes) }
            length = Int(UInt16(bigEndian: base.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
            at = 4
            guard length > FrameHeader.shortPayload else { return .violation(.lengthNotMinimal) }
        }
        guard length <= maximumPayload else { return .violation(.frameTooBig) }
        let opcode: WebSocketOpcode = first == 0x81 ? .text : .binary
        var header = FrameHeader(isFinal: true, opcode: opcode, payloadLength: length)
        if maskBit != 0 {
            header.isMasked = true
            header.maskingKey = base.loadUnaligned(fromByteOffset: at, as: UInt32.self)
            at += 4
        }
        return .header(header, length: at)
    }

    @inline(never)
    private func decodeCarefully(_ bytes: UnsafeRawBufferPointer) -> Result {
        guard bytes.count >= 1 else { return .incomplete }
        let first = bytes[0]
        let isCompressed = first & 0x70 == 0x40 && allowsCompression
        guard first & 0x70 == 0 || isCompressed else { return .violation(.reservedBits) }
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else { return .violation(.unknownOpcode) }
        guard !isCompressed || opcode == .text || opcode == .binary else { return .violation(.reservedBits) }
        let isFinal = first & 0x80 != 0
        guard isFinal || !opcode.isControl else { return .violation(.fragmentedControl) }

        guard bytes.count >= 2 else { return .incomplete }
        let second = bytes[1]
        guard second & 0x80 == maskBit else { return .violation(maskBit == 0 ? .maskedFrame : .unmaskedFrame) }
        var length = Int(second & 0x7F)
        guard length <= FrameHeader.shortPayload || !opcode.isControl else { return .violation(.longControl) }

        var at = 2
        switch length {
        case 126:
            guard bytes.count >= 4 else { return .incomplete }
            length = Int(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
            at = 4
            guard length > FrameHeader.shortPayload else { return .violation(.lengthNotMinimal) }
        case 127:
            guard bytes.count >= 10 else { return .incomplete }
            let long = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
            at = 10
            guard long <= UInt64(Int64.max) else { return .violation(.lengthTooLarge) }
            guard long > UInt64(FrameHeader.mediumPayload) else { return .violation(.lengthNotMinimal) }
            length = Int(long)
        default: break
        }
        guard length <= maximumPayload || opcode.isControl else { return .violation(.frameTooBig) }

        var header = FrameHeader(
            isFinal: isFinal, isCompressed: isCompressed, opcode: opcode, payloadLength: length)
        if maskBit != 0 {
            guard bytes.count >= at + 4 else { return .incomplete }
            header.isMasked = true
            header.maskingKey = bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)
            at += 4
        }
        return .header(header, length: at)
    }
}
