internal import Bytes
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
    /// From the first byte of a message that does not come at once to its last, at a server. Default 30 s; beyond it close code
    /// 1008. Kept to within a quarter of `pingInterval`.
    public var messageTimeout = Duration.seconds(30)
    /// From our close frame to the peer's, and from there to the end of the connection. Default 5 s.
    public var closeTimeout = Duration.seconds(5)
    /// Connections of one server at a time, those in the handshake among them. Default 100,000; beyond it 503.
    /// Each reactor takes its even share of them, and ends those beyond a quarter more, 64 at least, without an answer.
    public var connections = 100_000
    /// Connections from one address at a time: of IPv6 a /64 network counts as one, connections from this machine do not
    /// count (a proxy has them). Default 1,000; beyond it the connection ends, behind a trusted proxy with 429.
    public var connectionsPerAddress = 1_000
    /// Pings, pongs and close frames of one connection, on average over some seconds. Default 200; beyond it close code
    /// 1008.
    public var controlFramesPerSecond = 200
    /// How long nothing comes from a peer before it gets a ping; nil for never. Default 20 s. Times of keepalive and of
    /// `idleTimeout` are kept to within a quarter of this.
    public var pingInterval: Duration? = .seconds(20)
    /// How long the peer may then still be silent before the connection is given up. Default 20 s.
    public var pongTimeout = Duration.seconds(20)
    /// How long no message comes before the connection is closed with 1001; nil for never, the default.
    public var idleTimeout: Duration?
    /// Bytes waiting to be sent above which a connection is not writable and, at a server, not read from. Default 256 KiB.
    public var highWatermarkBytes = 256 << 10
    /// Bytes waiting to be sent below which it is again. Default 64 KiB.
    public var lowWatermarkBytes = 64 << 10
    /// Bytes waiting to be sent above which the connection is ended: its handler hears code 1006. Default 64 MiB. Who sends
    /// much looks at `isWritable` before.
    public var writeQueueBytes = 64 << 20

    /// Bytes of large shared messages, versions of states for instance, that may wait for one connection: who has more waiting
    /// and takes no such amount within `sharedBytesPatience` is ended with a reset; its handler hears code 1006. Default 1 MiB.
    public var sharedBytesUnsent = 1 << 20
    /// Default 10 s.
    public var sharedBytesPatience = Duration.seconds(10)
    /// Bytes that a server holds for its peers, all together: messages that are not whole, input that is not handled, output that
    /// is not taken. Less than 4 KiB of one kind does not count. Default a quarter of the machine's memory. At the limit new
    /// connections are answered 503, and one that begins to hold more is closed with 1013.
    public var heldBytes = MachineMemory.bytes / 4
    /// The same for all connections from one address (of IPv6 a /64 network), those from this machine among them. Default a
    /// quarter of `heldBytes`; beyond it 503, and close code 1013.
    public var heldBytesPerAddress: Int?
    /// The same for one connection. Default 80 MiB; beyond it close code 1008.
    public var heldBytesPerConnection = 80 << 20

    /// What those may ask who ask for pages.
    public var pages = PageLimits()

    /// The defaults: each property tells its own.
    public init() {}

    func channel(_ accounts: (any MemoryAccounts)?) -> ChannelLimits {
        ChannelLimits(
            high: highWatermarkBytes, low: lowWatermarkBytes, limit: writeQueueBytes, sharedBytes: sharedBytesUnsent,
            sharedPatience: sharedBytesPatience, accounts: accounts)
    }

    /// For connections over which pages are sent: the next piece is asked for when nothing waits any more.
    func pageChannel(_ accounts: (any MemoryAccounts)?) -> ChannelLimits {
        ChannelLimits(high: 0, low: 0, limit: writeQueueBytes, accounts: accounts)
    }
}
