/// What stands before a frame's payload (RFC 6455 §5.2).
package struct FrameHeader: Equatable, Sendable {
    /// The last frame of its message.
    package var isFinal: Bool
    /// RSV1 of a message's first frame (RFC 7692 §6).
    package var isCompressed = false
    package var opcode: WebSocketOpcode
    package var isMasked: Bool
    /// The four bytes of the key as they lie in memory; 0 without a mask.
    package var maskingKey: UInt32
    package var payloadLength: Int

    package init(
        isFinal: Bool, isCompressed: Bool = false, opcode: WebSocketOpcode, isMasked: Bool = false,
        maskingKey: UInt32 = 0, payloadLength: Int
    ) {
        self.isFinal = isFinal
        self.isCompressed = isCompressed
        self.opcode = opcode
        self.isMasked = isMasked
        self.maskingKey = maskingKey
        self.payloadLength = payloadLength
    }

    /// Two bytes, eight of length, four of key.
    package static let maximumLength = 14
    /// Payloads up to this need no further length bytes.
    package static let shortPayload = 125
    /// Payloads up to this need two.
    package static let mediumPayload = 0xFFFF
}
