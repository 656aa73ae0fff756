/// What one client may use of a server. Each limit has its own error.
public struct ServerLimits: Sendable {
    /// Calls of one connection that may be under way at once; more are answered `rateLimited`. Default 1,024.
    public var callsPerConnection = 1_024
    /// Streams of one connection at once; more are answered `rateLimited`. Default 256.
    public var streamsPerConnection = 256
    /// How long a call may take when its client sets no deadline of its own; then it is answered `timeout` and its task
    /// is cancelled. Default 60 seconds.
    public var callTimeout = Duration.seconds(60)
    /// Messages in a row that make no sense; at this many the connection is closed with 1008. Default 10.
    public var malformedMessages = 10
    /// Actors made on demand that may live at once; calls for more are answered `rateLimited`. Default 100,000.
    public var actorsOnDemand = 100_000
    /// Bytes of one message from a client; a larger one closes the connection with 1009. Default 1 MiB.
    public var messageSize = 1 << 20
    /// Connections at once; more are refused with 503. Default 1,000,000.
    public var connections = 1_000_000

    public init() {}
}
