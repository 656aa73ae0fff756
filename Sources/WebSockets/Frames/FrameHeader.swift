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

/// Which end of the connection this is: only a client's frames are masked (RFC 6455 §5.1).
package enum WebSocketRole: Sendable {
    case server, client
}

/// What a frame carries (RFC 6455 §5.2); a message is `text` or `binary`.
public enum WebSocketOpcode: UInt8, Sendable {
    /// A further fragment of the message that is under way (§5.4).
    case continuation = 0x0
    /// UTF-8 text; checked by us before it is delivered.
    case text = 0x1
    /// Bytes, of which nothing is checked.
    case binary = 0x2
    /// The sender sends nothing more after it (§5.5.1).
    case close = 0x8
    /// To be answered with a pong that has the same bytes (§5.5.2).
    case ping = 0x9
    /// Answers a ping, or says by itself that the sender is there (§5.5.3).
    case pong = 0xA

    /// Control frames are short, whole, and may come between the fragments of a message (§5.5).
    @inline(__always)
    var isControl: Bool { rawValue & 0x8 != 0 }
}
