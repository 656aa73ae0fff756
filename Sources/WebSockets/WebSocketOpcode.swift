/// What a frame carries (RFC 6455 §5.2); a message is `text` or `binary`.
public enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0x0
    /// UTF-8 text; checked by us before it is delivered.
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Control frames are short, whole, and may come between the fragments of a message (§5.5).
    @inline(__always)
    var isControl: Bool { rawValue & 0x8 != 0 }
}
