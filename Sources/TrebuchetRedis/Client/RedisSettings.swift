public import Networking

/// How a client of Redis servers behaves: how long it waits, and how much.
public struct RedisSettings: Sendable {
    /// How long an answer may take. Then it is not known whether the command was done, and a connection on which the oldest
    /// command waits so long is given up. Default 5 s.
    public var commandTimeout = Duration.seconds(5)
    /// How long connecting may take, and greeting the server behind it. Default 3 s.
    public var connectTimeout = Duration.seconds(3)
    /// Commands, subscriptions among them, that wait for their answers, or for the connection, at once; one more is refused. Default 10,000.
    public var waitingCommands = 10_000
    /// Bytes of the same. Default 32 MiB.
    public var waitingBytes = 32 << 20
    /// Subscriptions to channels at once; one more is refused. Default 100,000.
    public var subscriptions = 100_000
    /// The pause after a first attempt to connect that failed; it doubles with each other. Default 50 ms.
    public var firstReconnectDelay = Duration.milliseconds(50)
    /// The longest such pause. Default 2 s.
    public var longestReconnectDelay = Duration.seconds(2)
    /// How often sentinels, or a cluster, are asked who is in charge now. Default 1 s.
    public var topologyInterval = Duration.seconds(1)
    /// How often a command is sent on from node to node of a cluster. Default 5.
    public var redirects = 5
    /// By which name the server lists the connection; no spaces. Default "trebuchet".
    public var clientName = "trebuchet"
    /// Whom to trust with `rediss:`.
    public var tls = TLSClientSettings()

    /// The defaults.
    public init() {}
}
