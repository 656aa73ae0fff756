@_exported public import struct Transports.HTTPHeaders
@_exported public import struct Transports.TransportError
@_exported public import struct Transports.UnexpectedStatus
@_exported public import struct Transports.UnspokenProtocol
@_exported public import TrebuchetActors
public import Distributed
public import Relays
public import Transports
internal import TrebuchetWire

/// A connection to a Trebuchet server.
///
///     let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: 8080))
///     try await client.connect()
///     let todos = try client.resolve(TodoList.self, id: "todos")
///
/// It stays connected as long as somebody holds it, a reference that it has made, or a stream of one.
public final class TrebuchetClient: Sendable {
    /// Settings with their defaults.
    public struct Options: Sendable {
        /// How long connecting may take, handshake included. Default 10 seconds.
        public var connectTimeout = Duration.seconds(10)
        /// How long a call may wait for its answer, unless `withDeadline` sets less. Nil: without end. Default 30 seconds.
        public var callTimeout: Duration? = .seconds(30)
        /// Calls that may wait for their answers at once; more fail with `rateLimited`. Default 10,000.
        ///
        /// A server takes only so many at a time (`ServerLimits.callsPerConnection`); the others of these wait here until it
        /// has answered some, up to their deadlines, and are sent in the order in which they were made.
        public var callsInFlight = 10_000
        /// The largest message that is taken from the server, in bytes. The server is told of it in the handshake, and sends none
        /// that is larger. Default 16 MiB.
        public var messageSize = 16 << 20
        /// The largest message that the server takes, in bytes: its `ServerLimits.messageSize`. A call with a larger one is not
        /// sent and fails with `invalidArguments`; so does one over the server's own limit, once the server has told it, which it
        /// does first of all. Default 1 MiB, which is also the server's.
        public var serverMessageSize = 1 << 20

        /// Calls that the server may have under way at once to actors which live in this client; more are answered `rateLimited`.
        /// Default 1,024.
        public var callsFromServer = 1_024

        /// When and how a connection that has ended is made again.
        public var reconnect = ReconnectPolicy()
        /// What becomes of calls while there is no connection, but one is being made. Default `wait`.
        public var whileDisconnected = WhileDisconnected.wait
        /// How long nothing comes from the server before it gets a ping; nil for never. Default 20 s.
        public var pingInterval: Duration? = .seconds(20)
        /// How long it may then still be silent before the connection is given up. Default 20 s.
        public var pongTimeout = Duration.seconds(20)

        /// What becomes of calls that are made without a connection.
        public enum WhileDisconnected: Sendable {
            /// Calls wait for the connection, up to their deadline.
            case wait
            /// Calls fail at once with `unavailable`.
            case fail
        }

        /// Gives the bearer token that the server is shown, asked anew for each connection. An empty one is not
        /// sent. Default nil: none.
        public var token: (@Sendable () async throws -> String)?

        /// Fields of the request with which a connection begins, for a proxy or a server's `AccessPolicy`:
        /// `["X-Api-Key": "…"]`. Those that the client writes itself are not for them: `Authorization` where there is a
        /// `token`, and what makes the handshake. Default none.
        public var headers: HTTPHeaders = [:]

        /// Which part of the calls that are in no trace begin one, from 0 to 1. Calls within `TraceContext.with` are part of that in any
        /// case. Default 0.0.
        public var traceSampling = 0.0
        /// Told each call that is part of a trace and kept (`TraceContext.isSampled`), when its answer is there, on any thread: an
        /// `OTLPExporter` takes it. It must not block. Nil, the default: the caller's span is the parent of those at the server.
        public var spanEnded: (@Sendable (TraceSpan) -> Void)?

        /// Receives each event, and each version of a state, that a reader could not decode, where the reader runs. It must not block.
        ///
        /// Nil, the default, is `UndecodableValue.warn`: a line on standard error for the 1st, 2nd, 4th, 8th … of each stream.
        public var onUndecodable: (@Sendable (UndecodableValue) -> Void)?
        var reportUndecodable: @Sendable (UndecodableValue) -> Void { onUndecodable ?? UndecodableValue.warn }

        /// The defaults: each property tells its own.
        public init() {}

        /// The fields that say who connects: `headers` and the token.
        var requestHeaders: HTTPHeaders {
            get async throws {
                var headers = headers
                if let authorization = try await authorization {
                    headers.remove("Authorization")
                    headers.add("Authorization", authorization)
                }
                return headers
            }
        }

        /// What the header `Authorization` says of the token; nil without one.
        private var authorization: String? {
            get async throws {
                guard let token = try await token?(), !token.isEmpty else { return nil }
                return "Bearer \(token)"
            }
        }
    }

    /// The client's own system: remote actors are found in it, and the client's own actors are made in it.
    public let actorSystem: TrebuchetActorSystem
    private let addresses: ClientAddresses
    private let owner: (any AnyObject & Sendable)?
    let hold: ClientHold
    var core: ClientCore { hold.core }
    /// The server, for references: who holds it keeps the client connected.
    package var remoteServer: any RemoteServer { hold }

    /// A client that is not connected yet.
    public convenience init(transport: any ClientTransport, options: Options = Options()) {
        self.init(transport: transport, options: options, on: transport.clientLoop)
    }

    /// A client that is not connected yet, of a service with several servers, as the nodes of a cluster are: it begins with any of them, and
    /// when a connection breaks, cannot be made, or the server sends its clients away, goes to the next. Streams and calls go on there as
    /// over a new connection to the same server.
    ///
    /// - Parameter transports: of one kind, and at least one. An attempt with each counts as one failure where
    ///   `ReconnectPolicy` waits; `connect()` fails when each has failed once, unless it is to go on.
    public convenience init(transports: [any ClientTransport], options: Options = Options()) {
        let addresses = ClientAddresses(transports)
        self.init(addresses, options: options, on: addresses.loop, holding: nil)
    }

    /// The same on a loop of a test's, whose owner is held.
    package convenience init(
        transport: any ClientTransport, options: Options, on loop: any EventLoop,
        holding owner: (any AnyObject & Sendable)? = nil
    ) {
        self.init(ClientAddresses([transport]), options: options, on: loop, holding: owner)
    }

    private init(
        _ addresses: ClientAddresses, options: Options, on loop: any EventLoop,
        holding owner: (any AnyObject & Sendable)?
    ) {
        self.owner = owner
        self.addresses = addresses
        let core = ClientCore(
            loop: loop, options: options, peerName: addresses.name,
            addressIdentifiesServer: addresses.identifyServer, addresses: addresses.count)
        hold = ClientHold(core)
        actorSystem = TrebuchetActorSystem(loops: [loop], locals: core.locals)
        actorSystem.call(hold)
        actorSystem.reportUndecodable = options.reportUndecodable
        core.system = actorSystem
    }

    /// Connects, and keeps connected from then on: a connection that breaks is made again as `options.reconnect` says, and
    /// streams go on over it without their readers noticing. Returns when there is a connection. One that breaks at once may be gone by
    /// then, as any later: `connectionState` tells.
    ///
    /// Throws `TransportError` when there is none to be had: `refused`, `timedOut`, `handshake` and others; `closed` after
    /// `close()`. Throws `CancellationError` when the task is cancelled: then no connection is made, unless another task, a call or a
    /// stream waits for it.
    public func connect() async throws { try await core.connection.connect(opener) }

    /// Asks for a connection, unless there is one or one is being made, and does not wait for it. Calls that are made after
    /// this wait for the connection.
    package func connectIfNeeded() { core.connection.connectIfNeeded(opener) }

    private var opener: ClientConnection.Opener {
        { [addresses, weak core] attempt in
            guard let core else { throw CancellationError() }
            let request: ConnectionRequest
            do {
                request = try await ConnectionRequest(core.options)
            } catch {
                // One that cannot be had now may be had later, whatever its provider throws.
                throw TransportError(.token, "there is no token to connect with: \(error)", cause: error)
            }
            try await addresses.transport(of: attempt).open(request, ConnectionReceiver(core, number: attempt))
        }
    }

    /// The server, as in errors: `ws://localhost:8080`.
    package var address: String { addresses.name }

    /// Calls that are made and wait for a connection.
    package var waitingCallCount: Int {
        get async {
            let core = core
            return await core.loop.perform { core.callsUnderWay(number: 0) }
        }
    }

    /// Its version is 1, and grows each time the server has taken away what a connection may do (`CallerConnection.revoke`).
    package var revocations: StateRelay<Void> { core.revocations }

    /// How the client stands with its server; to be read and followed from anywhere.
    public var connectionState: StateRelay<ConnectionState> { core.connection.states }

    /// Ends the connection, and makes no other one until `connect()` is called again. Calls under way end with
    /// `unknownOutcome`, calls that wait with `unavailable`, and streams end. Returns when the connection has gone, or at once when the
    /// task is cancelled.
    public func disconnect() async { await core.connection.disconnect() }

    /// Closes the connection, for good. Calls under way end with `unknownOutcome`, streams end. Returns when the connection has gone, or
    /// at once when the task is cancelled.
    public func close() async { await core.connection.close() }

    /// A reference to an actor at the server. It is not asked whether the actor exists; a call would tell.
    ///
    /// The reference keeps the client connected, and so do references that come with results and states.
    public func resolve<A: DistributedActor>(_ type: A.Type, id: String) throws -> A
    where A.ActorSystem == TrebuchetActorSystem {
        try A.resolve(id: TrebuchetActorID(id, at: hold), using: actorSystem)
    }

    /// Makes errors of these types arrive as themselves. Those that a method names in `throws(…)` need no registration.
    public func register(errors types: any (Error & Decodable).Type...) {
        for type in types { core.errors.register(type) }
    }
}
