internal import Networking

/// How much a peer may ask of us; every size, count and time of the module is here.
public struct WebSocketLimits: Sendable {
    /// Bytes of the first line of an HTTP head. Default 8 KiB; beyond it 414.
    public var requestLineBytes = 8 << 10
    /// Bytes of a whole HTTP head. Default 16 KiB; beyond it 431.
    public var headerBytes = 16 << 10
    /// Fields of an HTTP head. Default 100; beyond it 431.
    public var headerCount = 100
    /// From the connection to the complete upgrade. Default 10 s.
    public var handshakeTimeout = Duration.seconds(10)
    /// Bytes of a message, all fragments together. Default 1 MiB; beyond it close code 1009.
    public var messageBytes = 1 << 20
    /// Bytes of one frame's payload. Default 1 MiB; beyond it close code 1009.
    public var frameBytes = 1 << 20
    /// Frames of one message. Default 1,024; beyond it close code 1009.
    public var fragmentsPerMessage = 1024
    /// From our close frame to the peer's, and from there to the end of the connection. Default 5 s.
    public var closeTimeout = Duration.seconds(5)
    /// Connections of one server at a time, those in the handshake among them. Default 100,000; beyond it 503.
    /// Each reactor takes its even share of them.
    public var connections = 100_000
    /// Bytes waiting to be sent above which a connection is not writable and not read from. Default 256 KiB.
    public var highWatermarkBytes = 256 << 10
    /// Bytes waiting to be sent below which it is again. Default 64 KiB.
    public var lowWatermarkBytes = 64 << 10

    public init() {}

    var watermarks: ByteChannel.Watermarks {
        var marks = ByteChannel.Watermarks()
        marks.high = highWatermarkBytes
        marks.low = lowWatermarkBytes
        return marks
    }
}
