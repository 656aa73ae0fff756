internal import Bytes
public import WebSockets

/// The resources that one client may use. Each limit has its own error.
///
/// By default one host may use at most a sixteenth of each counted resource, and so may one principal, so that a few of them
/// cannot exhaust it.
public struct ServerLimits: Sendable {
    /// The maximum number of in-flight calls of one connection, including calls that wait for an activation; more are answered
    /// `rateLimited`. Calls that are answered in place do not count. As many again may still run after their timeout or
    /// cancellation. Default 1,024.
    public var callsPerConnection = 1_024
    /// The maximum size in bytes of the messages of these calls; more are answered `rateLimited`. Default 16 MiB.
    public var callBytesPerConnection = 16 << 20
    /// The maximum number of streams of one connection; more are answered `rateLimited`. Default 256.
    public var streamsPerConnection = 256
    /// The maximum number of streams of all connections of one principal. Default 4,096.
    public var streamsPerPrincipal = 4_096
    /// The maximum number of streams of all connections of one host: an IPv4 address or an IPv6 /64 network. Loopback
    /// connections do not count. Default 65,536.
    public var streamsPerHost = 65_536
    /// The maximum number of streams of the server. Default 4,000,000.
    public var streams = 4_000_000
    /// The maximum number of streams with a filter of one connection. Default 64.
    public var filtersPerConnection = 64
    /// The maximum number of streams with a filter of all connections of one principal. Default 1,024.
    public var filtersPerPrincipal = 1_024
    /// The maximum number of streams with a filter of all connections of one host; loopback connections do not count. Default
    /// 16,384.
    public var filtersPerHost = 16_384
    /// The maximum number of streams with a filter of the server. Default 1,000,000.
    public var filters = 1_000_000
    /// The timeout of a call whose client sets no deadline. After it, the call is answered `timeout` and its task is cancelled.
    /// Default 60 seconds.
    public var callTimeout = Duration.seconds(60)
    /// The longest deadline that a client may set; a longer one is reduced to this. Default 10 minutes.
    public var maximumCallTimeout = Duration.seconds(600)
    /// The number of consecutive malformed messages after which the connection is closed with 1008. Default 10.
    public var malformedMessages = 10
    /// The maximum number of activated actors; calls that would activate more are answered `rateLimited`. Default 400,000.
    public var activatedActors = 400_000
    /// The maximum number of actors that one connection may have activated. Default 1,000.
    public var activatedActorsPerConnection = 1_000
    /// The maximum number of actors that all connections of one principal may have activated. Default 5,000.
    public var activatedActorsPerPrincipal = 5_000
    /// The maximum number of actors that all connections of one host may have activated; loopback connections do not count.
    /// Default 20,000.
    public var activatedActorsPerHost = 20_000
    /// The maximum size in bytes of a message from a client; a larger one closes the connection with 1009. Default 1 MiB.
    /// Clients of protocols 1 and 2 encode values in base64 and may send a third more, so that the same values fit.
    public var messageSize = 1 << 20
    /// The maximum size in bytes of a message to a client; a client may announce a lower one. A call with a larger result is
    /// answered `internal`, and a stream with a larger value ends with `internal`; the connection stays open. Default 16 MiB,
    /// which is what a `TrebuchetClient` accepts by default (`TrebuchetClient.Options.messageSize`).
    public var clientMessageSize = 16 << 20
    /// The maximum size in bytes of a persisted state in JSON. A call that exceeds it is answered `internal`, and the state is
    /// not written until it is smaller again. Default 64 MiB.
    public var persistedStateSize = 64 << 20
    /// The maximum size in bytes of the persisted events of one `@StreamedEvents(persisted: true)`, encoded as they are sent,
    /// without their numbers; the oldest are removed. A larger event is not sent, and the call that sends it is answered
    /// `internal`. Default 4 MiB.
    public var persistedEventBytes = 4 << 20
    /// The maximum number of different filters of one state, since each costs time with every version; more are answered
    /// `rateLimited`. One connection may add a sixteenth of them, and one principal or host (except loopback) a quarter.
    /// Readers of an existing filter do not count. Default 1,000.
    public var filtersPerState = 1_000
    /// The maximum size in bytes that the filters of one state may buffer for slow readers, or until their intervals end. The
    /// newest version, which readers share, does not count. The stream of a filter that would exceed it ends with
    /// `rateLimited`. Default 16 MiB.
    public var filterBytesPerState = 16 << 20
    /// The maximum number of connections; more are rejected with 503. Default 1,000,000.
    public var connections = 1_000_000
    /// The maximum number of connections of one principal; more are rejected with 429. Default 1,000.
    public var connectionsPerPrincipal = 1_000
    /// The maximum size in bytes of the server's buffered memory: incomplete input, unsent output, waiting calls, recorded
    /// responses and versions of states. Above it new work is rejected and existing work continues. Default a quarter of the
    /// machine's memory.
    public var bufferedBytes = ServerLimits.quarterOfMemory

    /// The rate at which one connection may start calls and streams; more are answered `rateLimited` with the time to wait.
    /// Default nil.
    public var callsPerConnectionRate: RateLimit?
    /// The rate for all connections of one principal together. Default nil.
    public var callsPerPrincipalRate: RateLimit?
    /// The rate for one method (`addTodo(title:)`) or stream, applied to each connection separately. Default none.
    public var callsPerMethod: [String: RateLimit] = [:]
    /// The time without input from a client after which the server sends a ping; nil disables pings. Default 20 s.
    public var pingInterval: Duration? = .seconds(20)
    /// The time without input after a ping until the connection is closed. Default 20 s.
    public var pongTimeout = Duration.seconds(20)
    /// The maximum number of connections of one address, except loopback; behind one of `AccessPolicy.trustedProxies` the
    /// client's address counts. One more is closed, behind a proxy with 429. Default 1,000.
    public var connectionsPerHost = 1_000

    /// The retention time of responses of `@Idempotent` calls, for clients whose connection broke before the response arrived.
    /// Default 60 seconds.
    public var recordedResponseTime = Duration.seconds(60)
    /// The resume retention: the time for which a state or event stream is treated as observed after an observer's connection
    /// broke. A client that reconnects within it receives the missed versions and events. An actor with an idle time stays active as long.
    /// Default 30 seconds.
    public var resumeTime = Duration.seconds(30)
    /// The maximum number of recorded responses. Above it `@Idempotent` calls are answered `rateLimited`, since an early
    /// eviction would let a call run twice. Default 1,000,000.
    public var recordedResponses = 1_000_000
    /// The maximum number of recorded responses of calls from one connection. Default 20,000.
    public var recordedResponsesPerConnection = 20_000
    /// The maximum number of recorded responses for all connections of one principal. Default 60,000.
    public var recordedResponsesPerPrincipal = 60_000
    /// The maximum number of recorded responses for all connections of one host: an IPv4 address or an IPv6 /64 network.
    /// Loopback connections do not count. Default 60,000.
    public var recordedResponsesPerHost = 60_000
    /// The maximum size in bytes of all recorded responses, each counted with 256 more; above it `@Idempotent` calls are
    /// answered `rateLimited`. A response that does not fit is not recorded, and a repeated call is answered `unknownOutcome`.
    /// Default 512 MiB.
    public var recordedResponseBytes = 512 << 20
    /// The maximum size in bytes of recorded responses of calls from one connection. Default 32 MiB.
    public var recordedResponseBytesPerConnection = 32 << 20
    /// The maximum size in bytes of recorded responses for all connections of one principal. Default 32 MiB.
    public var recordedResponseBytesPerPrincipal = 32 << 20
    /// The maximum size in bytes of recorded responses for all connections of one host; loopback connections do not count.
    /// Default 32 MiB.
    public var recordedResponseBytesPerHost = 32 << 20

    /// The maximum number of references to client actors that the server holds for one client, over all of its connections. An
    /// argument that exceeds it is rejected with `rateLimited`. Default 1,000.
    public var clientActorsPerClient = 1_000
    /// The maximum number of such references for all clients of one principal. Default 5,000.
    public var clientActorsPerPrincipal = 5_000
    /// The maximum number of such references for all clients of one host; loopback connections do not count. Default 20,000.
    public var clientActorsPerHost = 20_000
    /// The maximum number of such references of the server. Default 400,000.
    public var clientActors = 400_000
    /// The time for which references to actors of a disconnected client stay valid; calls to them then end with `unavailable`.
    /// Default 30 seconds.
    public var clientReconnectTime = Duration.seconds(30)
    /// The maximum number of in-flight calls from the server to actors of one client, including calls that wait for a
    /// reconnect; more end with `rateLimited`. Default 1,024.
    public var callsPerClient = 1_024
    /// The maximum number of such calls for all clients of one principal. Default 8,192.
    public var callsToClientsPerPrincipal = 8_192
    /// The maximum number of such calls for all clients of one host; loopback connections do not count. Default 32,768.
    public var callsToClientsPerHost = 32_768
    /// The maximum number of such calls of the server. Default 600,000.
    public var callsToClients = 600_000
    /// The maximum size in bytes of the messages of these calls for one client; more end with `rateLimited`. They also count
    /// towards `bufferedBytes`. Default 16 MiB.
    public var callBytesPerClient = 16 << 20
    /// The time within which a client must answer such a call, including time without a connection; then the call ends with
    /// `timeout`. `withDeadline` may set less. Default 30 seconds.
    public var clientCallTimeout = Duration.seconds(30)
    /// Limits for HTTP requests of pages.
    public var pages = PageLimits()
    /// The maximum size in bytes of a client's response; a call with a larger one ends with `internal`. Default 256 KiB.
    public var clientResponseSize = 256 << 10

    /// Creates limits with the default of each property.
    public init() {}

    /// The maximum buffered memory in bytes for all connections of one address: an IPv4 address or an IPv6 /64 network,
    /// including loopback. Default a quarter of `bufferedBytes`.
    public var bufferedBytesPerHost: Int?
    /// The maximum buffered memory in bytes for all connections of one principal. Default a quarter of `bufferedBytes`.
    public var bufferedBytesPerPrincipal: Int?
    /// The maximum buffered memory in bytes for one connection; above it the connection is closed with 1008. Default 80 MiB.
    public var bufferedBytesPerConnection = 80 << 20
    /// The maximum time from the first byte of a fragmented or partial message to its last; then the connection is closed with
    /// 1008. Default 30 seconds.
    public var messageTimeout = Duration.seconds(30)
    /// The maximum size in bytes of old versions of large states that wait for one connection. A connection is closed if more
    /// wait and it receives less than this amount within `supersededVersionTimeout`. Default 1 MiB.
    public var supersededVersionBytes = 1 << 20
    /// The time within which a connection must receive `supersededVersionBytes` if more wait. Default 10 seconds.
    public var supersededVersionTimeout = Duration.seconds(10)

    private static let quarterOfMemory = PhysicalMemory.bytes / 4

    var hasRates: Bool { hasRatesOfCallers || !callsPerMethod.isEmpty }

    /// Indicates whether there are rates that all calls count for.
    var hasRatesOfCallers: Bool { callsPerConnectionRate != nil || callsPerPrincipalRate != nil }
}
