internal import Bytes
public import WebSockets

/// What one client may use of a server. Each limit has its own error.
///
/// Of what is counted, one host has a sixteenth of the whole at most by default, and so has one principal: a few of them cannot
/// use it up for all others.
public struct ServerLimits: Sendable {
    /// Calls of one connection that may be under way at once, those that wait for an actor to be made among them; more are
    /// answered `rateLimited`. Calls that are answered where they arrive do not count. As many may be running beside them whose
    /// time is over or that were cancelled, and whose methods have not returned. Default 1,024.
    public var callsPerConnection = 1_024
    /// Bytes of the messages of these calls; more are answered `rateLimited`. Default 16 MiB.
    public var callBytesPerConnection = 16 << 20
    /// Streams of one connection at once; more are answered `rateLimited`. Default 256.
    public var streamsPerConnection = 256
    /// The same for all connections of one principal. Default 4,096.
    public var streamsPerPrincipal = 4_096
    /// The same for all connections of one host: an IPv4 address, or a /64 network of IPv6; this machine's own do not count.
    /// Default 65,536.
    public var streamsPerHost = 65_536
    /// The same for all. Default 4,000,000.
    public var streams = 4_000_000
    /// Streams with a filter, of one connection. Default 64.
    public var filtersPerConnection = 64
    /// The same for all connections of one principal. Default 1,024.
    public var filtersPerPrincipal = 1_024
    /// The same for all connections of one host; this machine's own do not count. Default 16,384.
    public var filtersPerHost = 16_384
    /// The same for all. Default 1,000,000.
    public var filters = 1_000_000
    /// How long a call may take when its client sets no deadline of its own; then it is answered `timeout` and its task
    /// is cancelled. Default 60 seconds.
    public var callTimeout = Duration.seconds(60)
    /// The longest deadline that a client may set; a longer one is taken for this. Default 10 minutes.
    public var longestCallTimeout = Duration.seconds(600)
    /// Messages in a row that make no sense; at this many the connection is closed with 1008. Default 10.
    public var malformedMessages = 10
    /// Actors made on demand that may live at once; calls for more are answered `rateLimited`. Default 400,000.
    public var actorsOnDemand = 400_000
    /// Of these, what one connection may have made. Default 1,000.
    public var actorsOnDemandPerConnection = 1_000
    /// The same for all connections of one principal. Default 5,000.
    public var actorsOnDemandPerPrincipal = 5_000
    /// The same for all connections of one host; this machine's own do not count. Default 20,000.
    public var actorsOnDemandPerHost = 20_000
    /// Bytes of one message from a client; a larger one closes the connection with 1009. Default 1 MiB. Clients of protocols 1 and
    /// 2, whose values are in base64, may send a third more, so that the same values fit.
    public var messageSize = 1 << 20
    /// Bytes of one message to a client, unless the client says that it takes less. A call with a larger result is answered
    /// `internal`, and a stream with a larger value ends with `internal`; the connection goes on. Default 16 MiB, which is what
    /// a `TrebuchetClient` takes by default (`TrebuchetClient.Options.messageSize`).
    public var clientMessageSize = 16 << 20
    /// Bytes of one persisted state in JSON; a call that makes it larger is answered `internal`, and the state is not
    /// written until it is smaller again. Default 64 MiB.
    public var persistedStateSize = 64 << 20
    /// Bytes of the events that are kept of one `@StreamedEvents(persisted: true)`, as they are sent and beside their number; older
    /// ones go. A larger event is not sent, and the call that wanted to is answered `internal`. Default 4 MiB.
    public var persistedEventBytes = 4 << 20
    /// Different filters of one state, since each costs time with every version; what one connection brings is a sixteenth of
    /// them at most, and what one principal or one host (this machine's own do not count) brings a quarter. Readers of a filter
    /// that is there already do not count. More are answered `rateLimited`. Default 1,000.
    public var filtersPerState = 1_000
    /// Bytes that the filters of one state may hold for readers who are behind, or until their intervals are over, beyond
    /// the newest version, which they share; the stream of a filter that would hold more ends with `rateLimited`.
    /// Default 16 MiB.
    public var filterBytesPerState = 16 << 20
    /// Connections at once; more are refused with 503. Default 1,000,000.
    public var connections = 1_000_000
    /// Connections that come in as one principal at a time; one more is refused with 429. Default 1,000.
    public var connectionsPerPrincipal = 1_000
    /// Bytes that the server holds for its peers, all together: input that is not whole, output that is not taken, calls that
    /// wait, kept answers, versions of states. While it holds more, new work is refused, and what is there goes on. Default a
    /// quarter of the machine's memory.
    public var heldBytes = ServerLimits.quarterOfMemory

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
    /// Connections from one address at a time, apart from this machine's own; behind one of `AccessPolicy.trustedProxies` the
    /// client's address counts. One more is closed, behind a proxy with 429. Default 1,000.
    public var connectionsPerAddress = 1_000

    /// How long the answers of `@Idempotent` calls are kept, for clients whose connection broke before they came. Default
    /// 60 seconds.
    public var answerTime = Duration.seconds(60)
    /// How long a state or a stream of events goes on as if it were observed, after an observer's connection broke: so that a
    /// client which is back by then finds what it missed. An actor with an idle time stays so long too. Default 30 seconds.
    public var resumeTime = Duration.seconds(30)
    /// Such answers at once; while there are more, further `@Idempotent` calls are answered `rateLimited`, since an answer that
    /// is forgotten too early would let a call run twice. Default 1,000,000.
    public var answers = 1_000_000
    /// The same for the calls that came over one connection. Default 20,000.
    public var answersPerConnection = 20_000
    /// The same for all connections of one principal together. Default 60,000.
    public var answersPerPrincipal = 60_000
    /// The same for all connections from one host, an IPv4 address or a /64 network of IPv6; this machine's own do not count.
    /// Default 60,000.
    public var answersPerHost = 60_000
    /// Bytes of all these answers, each counted with 256 more; while there are more, further `@Idempotent` calls are answered
    /// `rateLimited`, and an answer that does not fit is not kept: who asks for it again gets `unknownOutcome`. Default
    /// 512 MiB.
    public var answerBytes = 512 << 20
    /// The same for the calls that came over one connection. Default 32 MiB.
    public var answerBytesPerConnection = 32 << 20
    /// The same for all connections of one principal together. Default 32 MiB.
    public var answerBytesPerPrincipal = 32 << 20
    /// The same for all connections from one host; this machine's own do not count. Default 32 MiB.
    public var answerBytesPerHost = 32 << 20

    /// References to actors that live in clients, which the server holds for one client at a time, over all of its connections;
    /// an argument that brings more is refused with `rateLimited`. Default 1,000.
    public var clientActorsPerClient = 1_000
    /// The same for all clients of one principal. Default 5,000.
    public var clientActorsPerPrincipal = 5_000
    /// The same for all clients of one host; this machine's own do not count. Default 20,000.
    public var clientActorsPerHost = 20_000
    /// The same for all. Default 400,000.
    public var clientActors = 400_000
    /// How long a client may be away before the references to its actors mean nothing any more; calls to them then end
    /// `unavailable`. Default 30 seconds.
    public var clientGrace = Duration.seconds(30)
    /// Calls of the server's to actors of one client that may be under way at once, those that wait for the client to come back
    /// among them; more end with `rateLimited`. Default 1,024.
    public var callsToClient = 1_024
    /// The same for all clients of one principal. Default 8,192.
    public var callsToClientsPerPrincipal = 8_192
    /// The same for all clients of one host; this machine's own do not count. Default 32,768.
    public var callsToClientsPerHost = 32_768
    /// The same for all. Default 600,000.
    public var callsToClients = 600_000
    /// Bytes of the messages of these calls, for one client; more end with `rateLimited`. They count in `heldBytes` too.
    /// Default 16 MiB.
    public var callBytesToClient = 16 << 20
    /// How long a client may take to answer such a call, its absence included; then it ends with `timeout`. `withDeadline` may set
    /// less. Default 30 seconds.
    public var clientCallTimeout = Duration.seconds(30)
    /// What those may ask who ask for pages.
    public var pages = PageLimits()
    /// Bytes of a client's answer; a call with a larger one ends with `internal`. Default 256 KiB.
    public var clientAnswerSize = 256 << 10

    /// The defaults: each property tells its own.
    public init() {}

    /// Of these, what it holds for all connections from one address: an IPv4 address, or a /64 network of IPv6, this machine
    /// among them. Default a quarter of `heldBytes`.
    public var heldBytesPerAddress: Int?
    /// The same for all connections of one principal. Default a quarter of `heldBytes`.
    public var heldBytesPerPrincipal: Int?
    /// The same for one connection; one that holds more is closed with 1008. Default 80 MiB.
    public var heldBytesPerConnection = 80 << 20
    /// From the first byte of a message that does not come at once to its last; beyond it the connection is closed with 1008.
    /// Default 30 seconds.
    public var messageTimeout = Duration.seconds(30)
    /// Bytes of old versions of large states that may wait for one connection; one that has more waiting, and takes no such
    /// amount within `oldVersionPatience`, is ended. Default 1 MiB.
    public var oldVersionBytes = 1 << 20
    /// Default 10 seconds.
    public var oldVersionPatience = Duration.seconds(10)

    private static let quarterOfMemory = MachineMemory.bytes / 4

    var hasRates: Bool {
        callsPerConnectionRate != nil || callsPerPrincipalRate != nil || !callsPerMethod.isEmpty
    }
}
