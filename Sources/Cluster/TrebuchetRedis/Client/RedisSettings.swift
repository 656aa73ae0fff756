public import Networking

/// The timeouts and limits of a client of Redis servers.
public struct RedisSettings: Sendable {
    /// The maximum time until a reply. After it the outcome of the command is unknown, and a connection whose oldest
    /// command waits that long is closed. Default 5 s.
    public var commandTimeout = Duration.seconds(5)
    /// The maximum time to connect, and to finish the handshake. Default 3 s.
    public var connectTimeout = Duration.seconds(3)
    /// The maximum number of commands, including subscriptions, that wait for replies or for the connection; further
    /// ones are refused. Default 10,000.
    public var waitingCommands = 10_000
    /// The maximum size of these commands in bytes. Default 32 MiB.
    public var waitingBytes = 32 << 20
    /// The maximum number of subscriptions to channels; further ones are refused. Default 100,000.
    public var subscriptions = 100_000
    /// The pause after the first failed connection attempt; it doubles with each further one. Default 50 ms.
    public var firstReconnectDelay = Duration.milliseconds(50)
    /// The maximum pause between connection attempts. Default 2 s.
    public var maximumReconnectDelay = Duration.seconds(2)
    /// The interval at which sentinels, or a cluster, are queried for the current topology. Default 1 s.
    public var topologyInterval = Duration.seconds(1)
    /// The maximum number of redirections of a command between nodes of a cluster. Default 5.
    public var redirects = 5
    /// The name of the connection in the server's client list; no spaces. Default "trebuchet".
    public var clientName = "trebuchet"
    /// The trusted certificates for `rediss:`.
    public var tls = TLSClientSettings()

    /// Creates the default settings.
    public init() {}
}
