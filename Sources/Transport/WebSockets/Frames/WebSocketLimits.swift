internal import Bytes
internal import Networking

/// The limits on peers: all sizes, counts and times of the module.
public struct WebSocketLimits: Sendable {
    /// The maximum size of the first line of an HTTP head. Default 8 KiB; beyond it 414.
    public var requestLineBytes = 8 << 10
    /// The maximum size of an HTTP head. Default 16 KiB; beyond it 431.
    public var headerBytes = 16 << 10
    /// The maximum number of fields in an HTTP head. Default 100; beyond it 431.
    public var headerCount = 100
    /// The maximum time from the connection to the complete upgrade. Default 10 s.
    public var handshakeTimeout = Duration.seconds(10)
    /// The maximum size of a message, all fragments together. Default 1 MiB; beyond it close code 1009.
    public var messageBytes = 1 << 20
    /// The maximum size of a frame's payload. Default 1 MiB; beyond it close code 1009.
    public var frameBytes = 1 << 20
    /// The maximum number of frames in a message. Default 1,024; beyond it close code 1009.
    public var fragmentsPerMessage = 1024
    /// The maximum time from the first to the last byte of a message that does not arrive at once, at a server. Default 30 s;
    /// beyond it close code 1008. The precision is a quarter of `pingInterval`.
    public var messageTimeout = Duration.seconds(30)
    /// The maximum time from the local close frame to the peer's, and from there to the end of the connection. Default 5 s.
    public var closeTimeout = Duration.seconds(5)
    /// The maximum number of connections of a server, including those in the handshake. Default 100,000; beyond it 503. Each
    /// reactor has an even share of them. It closes connections above its share plus a quarter (at least 64) without a response.
    public var connections = 100_000
    /// The maximum number of connections from one address. An IPv6 /64 network counts as one address; connections from this
    /// machine do not count (a proxy has them). Default 1,000; beyond it the connection ends, behind a trusted proxy with 429.
    public var connectionsPerHost = 1_000
    /// The maximum rate of pings, pongs and close frames per connection, averaged over some seconds. Default 200; beyond it close
    /// code 1008.
    public var controlFramesPerSecond = 200
    /// The time without input from a peer after which it gets a ping; nil for never. Default 20 s. The times of keepalive and of
    /// `idleTimeout` have a precision of a quarter of this.
    public var pingInterval: Duration? = .seconds(20)
    /// The time after a ping in which the peer must send something before the connection is dropped. Default 20 s.
    public var pongTimeout = Duration.seconds(20)
    /// The time without a message after which the connection is closed with 1001; nil for never, the default.
    public var idleTimeout: Duration?
    /// The number of unsent bytes above which a connection is not writable and, at a server, not read from. Default 256 KiB.
    public var highWatermarkBytes = 256 << 10
    /// The number of unsent bytes below which a connection is writable again. Default 64 KiB.
    public var lowWatermarkBytes = 64 << 10
    /// The number of unsent bytes above which the connection is closed: its handler receives code 1006. Default 64 MiB. Code that
    /// sends large amounts checks `isWritable` first.
    public var writeQueueBytes = 64 << 20

    /// The maximum number of unsent bytes of large shared messages, such as versions of states. A connection with more that does
    /// not accept as many within `sharedBytesTimeout` is reset; its handler receives code 1006. Default 1 MiB.
    public var sharedBytesUnsent = 1 << 20
    /// The time limit for `sharedBytesUnsent`. Default 10 s.
    public var sharedBytesTimeout = Duration.seconds(10)
    /// The maximum number of bytes that a server holds for all its peers: partial messages, unhandled input and unsent output.
    /// Less than 4 KiB of one kind does not count. Default a quarter of the machine's memory. At the limit new connections get
    /// 503, and a connection that starts to hold more is closed with 1013.
    public var bufferedBytes = PhysicalMemory.bytes / 4
    /// The maximum number of bytes held for all connections from one address (an IPv6 /64 network counts as one), including this
    /// machine. Default a quarter of `bufferedBytes`; beyond it 503, and close code 1013.
    public var bufferedBytesPerHost: Int?
    /// The maximum number of bytes held for one connection. Default 80 MiB; beyond it close code 1008.
    public var bufferedBytesPerConnection = 80 << 20

    /// The limits on clients that request pages.
    public var pages = PageLimits()

    /// Creates the default limits.
    public init() {}

    func channel(_ accounts: (any MemoryAccountProvider)?) -> ChannelLimits {
        ChannelLimits(
            high: highWatermarkBytes, low: lowWatermarkBytes, limit: writeQueueBytes, sharedBytes: sharedBytesUnsent,
            sharedPatience: sharedBytesTimeout, accounts: accounts)
    }

    /// Returns the limits of a connection over which pages are sent: the next piece is requested when all output is sent.
    func pageChannel(_ accounts: (any MemoryAccountProvider)?) -> ChannelLimits {
        ChannelLimits(high: 0, low: 0, limit: writeQueueBytes, accounts: accounts)
    }
}
