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
    /// Bytes of one persisted state in JSON; a call that makes it larger is answered `internal`, and the state is not
    /// written until it is smaller again. Default 64 MiB.
    public var persistedStateSize = 64 << 20
    /// Bytes that the filters of one state may hold for readers who are behind, or until their intervals are over, beyond
    /// the newest version, which they share; the stream of a filter that would hold more ends with `rateLimited`.
    /// Default 16 MiB.
    public var filterBytesPerState = 16 << 20
    /// Connections at once; more are refused with 503. Default 1,000,000.
    public var connections = 1_000_000

    /// Calls and streams that one connection may begin in a time; more are answered `rateLimited`, with the time to wait.
    /// Default nil: as many as it can.
    public var callsPerConnectionRate: RateLimit?
    /// The same for all connections of one principal together. Default nil.
    public var callsPerPrincipalRate: RateLimit?
    /// The same for one method (`addTodo(title:)`) or stream, for each connection by itself. Default none.
    public var callsPerMethod: [String: RateLimit] = [:]
    /// How long nothing comes from a client before it gets a ping; nil for never. Default 20 s.
    public var pingInterval: Duration? = .seconds(20)
    /// How long it may then still be silent before the connection is given up. Default 20 s.
    public var pongTimeout = Duration.seconds(20)
    /// Connections from one address at a time, apart from this machine's own. Default 1,000.
    public var connectionsPerAddress = 1_000

    /// How long the answers of `@Idempotent` calls are kept, for clients whose connection broke before they came. Default
    /// 60 seconds.
    public var answerTime = Duration.seconds(60)
    /// Such answers at once; while there are more, further `@Idempotent` calls are answered `rateLimited`, since an answer that
    /// is forgotten too early would let a call run twice. Default 500,000.
    public var answers = 500_000
    /// The same for the calls that came over one connection. Default 50,000.
    public var answersPerConnection = 50_000
    /// Bytes of all these answers, each counted with 256 more. Default 256 MiB.
    public var answerBytes = 256 << 20

    public init() {}

    var hasRates: Bool {
        callsPerConnectionRate != nil || callsPerPrincipalRate != nil || !callsPerMethod.isEmpty
    }
}
