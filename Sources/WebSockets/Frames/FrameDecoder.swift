/// Reads frame headers from bytes; strict about everything RFC 6455 §5 forbids.
///
/// It keeps nothing between calls. Each error is found at the first byte that shows it.
package struct FrameDecoder: Sendable {
    package enum Result: Equatable {
        /// More bytes are needed; those given hold no error.
        case incomplete
        /// The header and the number of bytes it takes.
        case header(FrameHeader, length: Int)
        case violation(ProtocolViolation)
    }

    /// The mask bit that every frame of the peer has (0x80 from clients, 0 from servers).
    private let maskBit: UInt8
    var maximumPayload: Int
    /// Compression was agreed on: the first frame of a message may have RSV1.
    private let allowsCompression: Bool

    /// `role` is our own: a server takes masked frames alone, a client unmasked ones.
    package init(role: WebSocketRole, maximumPayload: Int, allowsCompression: Bool = false) {
        self.allowsCompression = allowsCompression
        maskBit = role == .server ? 0x80 : 0
        self.maximumPayload = maximumPayload
    }

    @inline(__always)
    package func decode(_ bytes: UnsafeRawBufferPointer) -> Result {
        // The three forms that nearly every frame has: whole text or binary messages below 64 KiB.
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
