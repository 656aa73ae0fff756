internal import Bytes
public import TrebuchetActors
public import WebSockets

/// The resources that clients may use, in groups. Each limit has its own error, which names the setting:
///
///     var limits = ServerLimits()
///     limits.calls.perConnection = 100
///     limits.memory.total = 1 << 30
///
/// The last word of a count is its scope:
///
/// - `perConnection`: one connection.
/// - `perClient`: one client with client actors, over all of its connections.
/// - `perPrincipal`: all connections of one principal.
/// - `perHost`: all connections of one host, an IPv4 address or an IPv6 /64 network. Loopback connections do not count, except
///   for `memory.perHost`. An IPv6 /48 network may use four times as much.
/// - `perMethod`: the calls of one method by one connection.
/// - `total`: the server.
///
/// By default one host may use at most a sixteenth of each counted resource, and so may one principal, so that a few of them
/// cannot exhaust it.
public struct ServerLimits: Sendable {
    /// The number of connections, and their keepalive.
    public var connections = Connections()
    /// The size of messages.
    public var messages = Messages()
    /// In-flight calls of clients.
    public var calls = Calls()
    /// Streams, with a filter or without.
    public var streams = Streams()
    /// Streams with a filter, and the filters of one state.
    public var filters = Filters()
    /// Recorded responses of `@Idempotent` calls.
    public var idempotency = Idempotency()
    /// Actors that calls and streams of clients activate.
    public var activatedActors = ActivatedActors()
    /// References to client actors that the server holds.
    public var clientActors = ClientActors()
    /// In-flight calls from the server to client actors.
    public var clientCalls = ClientCalls()
    /// Buffered memory.
    public var memory = Memory()
    /// Persisted states and events.
    public var persistence = Persistence()
    /// Alarms of actors.
    public var alarms = Alarms()
    /// HTTP requests of pages.
    public var pages = PageLimits()
    /// In-flight HTTP requests that make calls or run a route.
    public var http = HTTP()

    /// Creates limits with the default of each setting.
    public init() {}

    /// The number of connections, and their keepalive.
    public struct Connections: Sendable {
        /// The maximum number of connections; more are rejected with 503. Default 1,000,000.
        public var total = 1_000_000
        /// The maximum number of connections of one principal; more are rejected with 429. Default 1,000.
        public var perPrincipal = 1_000
        /// The maximum number of connections of one host; behind one of `AccessPolicy.trustedProxies` the client's address
        /// counts. One more is closed, behind a proxy with 429. Default 1,000.
        public var perHost = 1_000
        /// The time without input from a client after which the server sends a ping; nil disables pings. Default 20 s.
        public var pingInterval: Duration? = .seconds(20)
        /// The time without input after a ping until the connection is closed. Default 20 s.
        public var pongTimeout = Duration.seconds(20)
    }

    /// The size of messages.
    public struct Messages: Sendable {
        /// The maximum size of a message from a client; a larger one closes the connection with 1009. Default 1 MiB. Clients of
        /// protocols 1 and 2 encode values in base64 and may send a third more, so that the same values fit.
        public var inboundBytes = 1 << 20
        /// The maximum size of a message to a client; a client may announce a lower one. A call with a larger result is answered
        /// `internal`, and a stream with a larger value ends with `internal`; the connection stays open. Default 16 MiB, which is
        /// what a `TrebuchetClient` accepts by default (`TrebuchetClient.Options.messageSize`).
        public var outboundBytes = 16 << 20
        /// The maximum time from the first byte of a fragmented or partial message to its last; then the connection is closed
        /// with 1008. Default 30 seconds.
        public var timeout = Duration.seconds(30)
        /// The number of consecutive malformed messages after which the connection is closed with 1008. Default 10.
        public var malformedInARow = 10
    }

    /// In-flight calls of clients.
    public struct Calls: Sendable {
        /// The maximum number of in-flight calls of one connection, including calls that wait for an activation; more are
        /// answered `rateLimited`. Calls that are answered in place do not count. As many again may still run after their timeout
        /// or cancellation. Default 1,024.
        public var perConnection = 1_024
        /// The maximum size of the messages of these calls; more are answered `rateLimited`. Default 16 MiB.
        public var bytesPerConnection = 16 << 20
        /// The timeout of a call whose client sets no deadline. After it, the call is answered `timeout` and its task is
        /// cancelled. Default 60 seconds.
        public var timeout = Duration.seconds(60)
        /// The longest deadline that a client may set; a longer one is reduced to this. Default 10 minutes.
        public var maximumTimeout = Duration.seconds(600)
        /// The rates of calls and starts of streams.
        public var rate = CallRates()
    }

    /// The rates at which clients may start calls and streams; more are answered `rateLimited` with the time to wait. None by
    /// default.
    public struct CallRates: Sendable {
        /// The rate of one connection. Default nil.
        public var perConnection: RateLimit?
        /// The rate of all connections of one principal together. Default nil.
        public var perPrincipal: RateLimit?
        /// The rates of single methods and streams, applied to each connection separately. Other methods keep their speed.
        ///
        ///     limits.calls.rate.perMethod[RatedMethod("add(title:)", of: TodoList.self)] = RateLimit(callsPerSecond: 2, burst: 5)
        public var perMethod: [RatedMethod: RateLimit] = [:]
    }

    /// Streams, with a filter or without; more are answered `rateLimited`.
    public struct Streams: Sendable {
        /// The maximum number of streams of one connection. Default 256.
        public var perConnection = 256
        /// The maximum number of streams of all connections of one principal. Default 4,096.
        public var perPrincipal = 4_096
        /// The maximum number of streams of all connections of one host. Default 65,536.
        public var perHost = 65_536
        /// The maximum number of streams of the server. Default 4,000,000.
        public var total = 4_000_000
        /// The time for which a state or event stream is treated as observed after an observer's connection broke. A client that
        /// reconnects within it receives the missed versions and events. An actor with an idle time stays active as long.
        /// Default 30 seconds.
        public var resumeRetention = Duration.seconds(30)
        /// The maximum size of old versions of large states that wait for one connection. A connection is closed if more wait and
        /// it receives less than this amount within `supersededVersionTimeout`. Default 1 MiB.
        public var supersededVersionBytes = 1 << 20
        /// The time within which a connection must receive `supersededVersionBytes` if more wait. Default 10 seconds.
        public var supersededVersionTimeout = Duration.seconds(10)
    }

    /// Streams with a filter, and the filters of one state.
    public struct Filters: Sendable {
        /// The maximum number of streams with a filter of one connection. Default 64.
        public var perConnection = 64
        /// The maximum number of streams with a filter of all connections of one principal. Default 1,024.
        public var perPrincipal = 1_024
        /// The maximum number of streams with a filter of all connections of one host. Default 16,384.
        public var perHost = 16_384
        /// The maximum number of streams with a filter of the server. Default 1,000,000.
        public var total = 1_000_000
        /// The maximum number of different filters of one state, since each costs time with every version; more are answered
        /// `rateLimited`. One connection may add a sixteenth of them, and one principal or host (except loopback) a quarter.
        /// Readers of an existing filter do not count. Default 1,000.
        public var perState = 1_000
        /// The maximum size of the data that the filters of one state may buffer for slow readers, or until their intervals end.
        /// The newest version, which readers share, does not count. The stream of a filter that would exceed it ends with
        /// `rateLimited`. Default 16 MiB.
        public var bytesPerState = 16 << 20
    }

    /// Recorded responses of `@Idempotent` calls, for clients whose connection broke before the response arrived.
    ///
    /// Above a number or a size, `@Idempotent` calls are answered `rateLimited`, since an early eviction would let a call run
    /// twice. Each response counts 256 bytes more than its size. A response that does not fit is not recorded, and a repeated call
    /// is answered `unknownOutcome`.
    public struct Idempotency: Sendable {
        /// The retention time of a response. Default 60 seconds.
        public var retention = Duration.seconds(60)
        /// The maximum number of responses of calls from one connection. Default 20,000.
        public var perConnection = 20_000
        /// The maximum number of responses for all connections of one principal. Default 60,000.
        public var perPrincipal = 60_000
        /// The maximum number of responses for all connections of one host. Default 60,000.
        public var perHost = 60_000
        /// The maximum number of responses of the server. Default 1,000,000.
        public var total = 1_000_000
        /// The maximum size of responses of calls from one connection. Default 32 MiB.
        public var bytesPerConnection = 32 << 20
        /// The maximum size of responses for all connections of one principal. Default 32 MiB.
        public var bytesPerPrincipal = 32 << 20
        /// The maximum size of responses for all connections of one host. Default 32 MiB.
        public var bytesPerHost = 32 << 20
        /// The maximum size of all responses. Default 512 MiB.
        public var totalBytes = 512 << 20
    }

    /// Actors that calls and streams of clients activate; those that would activate more are answered `rateLimited`.
    public struct ActivatedActors: Sendable {
        /// The maximum number of actors that one connection may have activated. Default 1,000.
        public var perConnection = 1_000
        /// The maximum number of actors that all connections of one principal may have activated. Default 5,000.
        public var perPrincipal = 5_000
        /// The maximum number of actors that all connections of one host may have activated. Default 20,000.
        public var perHost = 20_000
        /// The maximum number of activated actors. Default 400,000.
        public var total = 400_000
    }

    /// References to client actors that the server holds. An argument that exceeds a limit is rejected with `rateLimited`.
    public struct ClientActors: Sendable {
        /// The maximum number of references for one client, over all of its connections. Default 1,000.
        public var perClient = 1_000
        /// The maximum number of references for all clients of one principal. Default 5,000.
        public var perPrincipal = 5_000
        /// The maximum number of references for all clients of one host. Default 20,000.
        public var perHost = 20_000
        /// The maximum number of references of the server. Default 400,000.
        public var total = 400_000
        /// The time for which references to actors of a disconnected client stay valid; calls to them then end with
        /// `unavailable`. Default 30 seconds.
        public var reconnectTime = Duration.seconds(30)
    }

    /// In-flight calls from the server to client actors, including calls that wait for a reconnect; more end with `rateLimited`.
    public struct ClientCalls: Sendable {
        /// The maximum number of calls to actors of one client. Default 1,024.
        public var perClient = 1_024
        /// The maximum number of calls for all clients of one principal. Default 8,192.
        public var perPrincipal = 8_192
        /// The maximum number of calls for all clients of one host. Default 32,768.
        public var perHost = 32_768
        /// The maximum number of calls of the server. Default 600,000.
        public var total = 600_000
        /// The maximum size of the messages of calls to one client. They also count towards `memory`. Default 16 MiB.
        public var bytesPerClient = 16 << 20
        /// The time within which a client must answer a call, including time without a connection; then the call ends with
        /// `timeout`. `withDeadline` may set less. Default 30 seconds.
        public var timeout = Duration.seconds(30)
        /// The maximum size of a client's response; a call with a larger one ends with `internal`. Default 256 KiB.
        public var responseBytes = 256 << 10
    }

    /// Buffered memory in bytes: incomplete input, unsent output, waiting calls, recorded responses and versions of states.
    public struct Memory: Sendable {
        /// The maximum of the server. Above it new work is rejected and existing work continues. Default a quarter of the
        /// machine's memory.
        public var total = Memory.quarterOfMachine
        /// The maximum for all connections of one host, including loopback; nil, the default, for a quarter of `total`.
        public var perHost: Int?
        /// The maximum for all connections of one principal; nil, the default, for a quarter of `total`.
        public var perPrincipal: Int?
        /// The maximum for one connection; above it the connection is closed with 1008. Default 80 MiB.
        public var perConnection = 80 << 20

        private static let quarterOfMachine = PhysicalMemory.bytes / 4

        /// `perPrincipal` with its default.
        var ofPrincipal: Int { perPrincipal ?? total / 4 }
        /// `perHost` with its default.
        var ofHost: Int { perHost ?? total / 4 }
    }

    /// Persisted states and events.
    public struct Persistence: Sendable {
        /// The maximum size of a persisted state in JSON. A call that exceeds it is answered `internal`, and the state is not
        /// written until it is smaller again. Default 64 MiB.
        public var stateBytes = 64 << 20
        /// The maximum size of the persisted events of one `@StreamedEvents(persisted: true)`, encoded as they are sent, without
        /// their numbers; the oldest are removed. A larger event is not sent, and the call that sends it is answered `internal`.
        /// Default 4 MiB.
        public var eventBytes = 4 << 20
    }

    /// In-flight HTTP requests that make calls or run a route; more are answered 429. A request counts from its head to its response, and
    /// that of a route until its handler has ended. A connection has one at a time.
    public struct HTTP: Sendable {
        /// The maximum number of requests of one principal. Default 256.
        public var perPrincipal = 256
        /// The maximum number of requests of one host. Default 256.
        public var perHost = 256
        /// The maximum number of requests of the server. Default 4,096.
        public var total = 4_096
    }

    /// Alarms of actors, and their delivery.
    public struct Alarms: Sendable {
        /// The maximum number of alarms of an actor; setting another one throws `rateLimited`. All of them are written with each change
        /// of one. Default 100.
        public var perActor = 100
        /// The maximum length of an alarm's name in UTF-8; a longer one throws `invalidArguments`. Default 128 bytes.
        public var nameBytes = 128
        /// The maximum size of an alarm's payload in JSON; a larger one throws `invalidArguments`. Default 1 KiB.
        public var payloadBytes = 1 << 10
        /// The maximum number of attempts to deliver an alarm whose method throws an error. Then the alarm is logged and removed.
        /// Default 10.
        public var attempts = 10
        /// The maximum number of actors whose alarms are delivered at the same time; others wait. In a cluster, actors with
        /// `placement: .cluster` are counted separately. Default 64.
        public var concurrent = 64
    }
}

extension AlarmSettings {
    init(
        _ limits: ServerLimits.Alarms, now: @escaping @Sendable () -> Int64,
        didSchedule: @escaping @Sendable (_ time: Int64) -> Void
    ) {
        self.init(now: now, didSchedule: didSchedule)
        (perActor, nameBytes, payloadBytes) = (limits.perActor, limits.nameBytes, limits.payloadBytes)
        attempts = max(1, limits.attempts)
    }
}

/// A method or stream of an actor type, as the key of a rate (`ServerLimits.CallRates.perMethod`).
public struct RatedMethod: Hashable, Sendable {
    package let type: ActorType
    package let name: String

    /// Creates the key of a method or stream: `RatedMethod("add(title:)", of: TodoList.self)`. Traps if the type has none of this
    /// name.
    public init<A: TrebuchetActor>(_ name: String, of type: A.Type) {
        let entry = ActorTypes.entry(of: type)
        // unreachable from data: the program writes the name.
        precondition(entry.hasTarget(name), "\(entry.name) has no method or stream '\(name)'")
        self.init(name, of: entry)
    }

    init(_ name: String, of type: ActorType) { (self.type, self.name) = (type, name) }

    public static func == (one: Self, other: Self) -> Bool { one.type === other.type && one.name == other.name }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(type))
        hasher.combine(name)
    }
}

extension ServerLimits.CallRates {
    /// Indicates whether there are rates that all calls count for. Then no call takes the hot path; a new rate of this kind must be
    /// added here, or the hot path does not apply it.
    var limitsAllCalls: Bool { perConnection != nil || perPrincipal != nil }

    var isEmpty: Bool { !limitsAllCalls && perMethod.isEmpty }
}
