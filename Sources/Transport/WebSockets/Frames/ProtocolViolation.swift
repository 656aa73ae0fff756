/// A protocol violation by the peer (RFC 6455 §5, §7.1.7).
///
/// It is one byte in memory, so that returning it is cheap where frames are read.
package enum ProtocolViolation: Error, CaseIterable {
    case reservedBits, unknownOpcode, fragmentedControl, longControl
    case lengthNotMinimal, lengthTooLarge, unmaskedFrame, maskedFrame
    case continuationOfNothing, messageInsideMessage
    case closePayload, closeCode
    case invalidUTF8, badCompression
    case frameTooBig, messageTooBig, tooManyFragments
    case tooManyControlFrames

    /// The close code with which the connection fails.
    package var code: WebSocketCloseCode {
        switch self {
        case .invalidUTF8, .badCompression: .invalidPayload
        case .frameTooBig, .messageTooBig, .tooManyFragments: .messageTooBig
        case .tooManyControlFrames: .policyViolation
        default: .protocolError
        }
    }

    /// The reason in the close frame, for the developer of the peer.
    package var reason: String {
        switch self {
        case .reservedBits: "reserved bits are set without an extension"
        case .unknownOpcode: "unknown opcode"
        case .fragmentedControl: "control frame is fragmented"
        case .longControl: "control frame is longer than 125 bytes"
        case .lengthNotMinimal: "payload length is not in its shortest form"
        case .lengthTooLarge: "payload length has its highest bit set"
        case .unmaskedFrame: "frame of a client is not masked"
        case .maskedFrame: "frame of a server is masked"
        case .continuationOfNothing: "continuation without a message to continue"
        case .messageInsideMessage: "new message before the last one ended"
        case .closePayload: "close frame with one byte of payload"
        case .closeCode: "close code must not be sent"
        case .invalidUTF8: "text is not UTF-8"
        case .badCompression: "compressed message is not DEFLATE data"
        case .frameTooBig: "frame is over the limit"
        case .messageTooBig: "message is over the limit"
        case .tooManyFragments: "message has too many fragments"
        case .tooManyControlFrames: "too many control frames"
        }
    }
}
