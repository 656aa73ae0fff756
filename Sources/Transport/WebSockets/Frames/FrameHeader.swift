/// The header of a frame (RFC 6455 §5.2).
package struct FrameHeader: Equatable, Sendable {
    /// True for the last frame of a message.
    package var isFinal: Bool
    /// RSV1 of a message's first frame (RFC 7692 §6).
    package var isCompressed = false
    package var opcode: WebSocketOpcode
    package var isMasked: Bool
    /// The four bytes of the key in memory order; 0 without a mask.
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

    /// The maximum length: two bytes, eight of length, four of key.
    package static let maximumLength = 14
    /// The maximum payload without extended length bytes.
    package static let shortPayload = 125
    /// The maximum payload with two extended length bytes.
    package static let mediumPayload = 0xFFFF
}

/// The side of a connection: only a client's frames are masked (RFC 6455 §5.1).
package enum WebSocketRole: Sendable {
    case server, client
}

/// The type of a frame (RFC 6455 §5.2); a message is `text` or `binary`.
public enum WebSocketOpcode: UInt8, Sendable {
    /// A further fragment of the current message (§5.4).
    case continuation = 0x0
    /// UTF-8 text, validated before delivery.
    case text = 0x1
    /// Bytes without validation.
    case binary = 0x2
    /// The last frame from its sender (§5.5.1).
    case close = 0x8
    /// A ping, which requires a pong with the same bytes (§5.5.2).
    case ping = 0x9
    /// A response to a ping, or an unsolicited sign of life (§5.5.3).
    case pong = 0xA

    /// True for control frames, which are short, unfragmented, and allowed between the fragments of a message (§5.5).
    @inline(__always)
    var isControl: Bool { rawValue & 0x8 != 0 }
}
