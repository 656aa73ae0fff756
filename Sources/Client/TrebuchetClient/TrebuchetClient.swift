@_exported public import struct Transports.HTTPHeaders
@_exported public import struct Transports.TransportError
@_exported public import struct Transports.UnexpectedHTTPStatus
@_exported public import struct Transports.SubprotocolNotSupported
@_exported public import TrebuchetActors
public import Distributed
public import Relays
public import Transports
internal import TrebuchetWire

/// A client of a Trebuchet server.
///
///     let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: 8080))
///     try await client.connect()
///     let todos = try client.resolve(TodoList.self, id: "todos")
///
/// It stays connected as long as the client, a reference that it has created, or a stream of one is retained.
public final class TrebuchetClient: Sendable {
    /// The settings of a client.
    public struct Options: Sendable {
        /// The time limit for connecting, including the handshake. Default 10 seconds.
        public var connectTimeout = Duration.seconds(10)
        /// The time limit for the response of a call, unless `withDeadline` sets less. Nil: no limit. Default 30 seconds.
        public var callTimeout: Duration? = .seconds(30)
        /// The maximum number of calls without a response; further calls fail with `rateLimited`. Default 10,000.
        ///
        /// A server accepts a limited number at a time (`ServerLimits.calls.perConnection`). The other calls wait here for
        /// responses, up to their deadlines, and are sent in the order of their creation.
        public var callsInFlight = 10_000
        /// The maximum message size that the client accepts from the server, in bytes. The client sends it in the handshake, and
        /// the server sends no larger message. Default 16 MiB.
        public var messageSize = 16 << 20
        /// The maximum message size that the server accepts, in bytes: its `ServerLimits.messages.inboundBytes`. A larger call is not sent
        /// and fails with `invalidArguments`. So does a call above the limit that the server advertises when the connection
        /// starts. Default 1 MiB, which is also the server's.
        public var serverMessageSize = 1 << 20

        /// The maximum number of concurrent calls from the server to actors in this client; further calls get `rateLimited`.
        /// Default 1,024.
        public var callsFromServer = 1_024

        /// The policy for reconnecting.
        public var reconnect = ReconnectPolicy()
        /// The handling of calls while a connection is being made. Default `wait`.
        public var whileDisconnected = WhileDisconnected.wait
        /// The time without input from the server after which it gets a ping; nil for never. Default 20 s.
        public var pingInterval: Duration? = .seconds(20)
        /// The time after a ping in which the server must send something before the connection is dropped. Default 20 s.
        public var pongTimeout = Duration.seconds(20)

        /// The handling of calls without a connection.
        public enum WhileDisconnected: Sendable {
            /// Calls wait for the connection, up to their deadline.
            case wait
            /// Calls fail immediately with `unavailable`.
            case fail
        }

        /// Returns the bearer token for the server, called for each connection. An empty token is not sent. Default nil: none.
        public var token: (@Sendable () async throws -> String)?

        /// The header fields of the connection request, for a proxy or a server's `AccessPolicy`: `["X-Api-Key": "…"]`. Fields
        /// that the client sets itself cannot be changed: `Authorization` if there is a `token`, and the fields of the handshake.
        /// Default none.
        public var headers: HTTPHeaders = [:]

        /// The interceptors of calls and streams; the first one is the outermost. Default none.
        public var interceptors: [any ClientInterceptor] = []

        /// The fraction of calls without a trace that start one, from 0 to 1. Calls within `TraceContext.with` are always part of
        /// that trace. Default 0.0.
        public var traceSampling = 0.0
        /// Called for each recorded call of a trace (`TraceContext.isSampled`) when its response has arrived, on any thread; for
        /// example by an `OTLPExporter`. It must not block. Nil, the default: the caller's span is the parent of the server's
        /// spans.
        public var onSpanEnd: (@Sendable (TraceSpan) -> Void)?

        /// Called for each event or version of a state that a reader could not decode, on the reader's thread. It must not block.
        ///
        /// Nil, the default, is `UndecodableValue.warn`: a line on standard error for the 1st, 2nd, 4th, 8th … of each stream.
        public var onUndecodable: (@Sendable (UndecodableValue) -> Void)?
        var reportUndecodable: @Sendable (UndecodableValue) -> Void { onUndecodable ?? UndecodableValue.warn }

        /// Creates the default options.
        public init() {}

        /// The header fields that identify the client: `headers` and the token.
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

        /// The value of the `Authorization` field; nil without a token.
        private var authorization: String? {
            get async throws {
                guard let token = try await token?(), !token.isEmpty else { return nil }
                return "Bearer \(token)"
            }
        }
    }

    /// The client's actor system: it resolves remote actors and contains the client's actors.
    public let actorSystem: TrebuchetActorSystem
    private let addresses: ClientAddresses
    private let owner: (any AnyObject & Sendable)?
    let connectionLease: ClientConnectionLease
    var core: ClientCore { connectionLease.core }
    /// The server, for references: retaining it keeps the client connected.
    package var remoteServer: any RemoteServer { connectionLease }

    /// Creates a client, which is not connected yet.
    ///
    ///     let client = TrebuchetClient(transport: .webSocket(url: "wss://example.com"))
    public convenience init(transport: some ClientTransport, options: Options = Options()) {
        self.init(transport: transport, options: options, on: transport.clientLoop)
    }

    /// Creates a client of a service with several servers, such as the nodes of a cluster; it is not connected yet. It starts
    /// with any of them. When a connection breaks, fails or drains, it uses the next one. Streams and calls continue there as
    /// over a new connection to the same server.
    ///
    ///     let client = TrebuchetClient(transports: [
    ///         .webSocket(url: "wss://east.example.com"), .webSocket(url: "wss://west.example.com"),
    ///     ])
    ///
    /// - Parameter transports: at least one. An attempt with each counts as one failure for the delays of `ReconnectPolicy`;
    ///   `connect()` fails when each has failed once, unless the policy continues.
    public convenience init<Transport: ClientTransport>(transports: [Transport], options: Options = Options()) {
        let addresses = ClientAddresses(transports)
        self.init(addresses, options: options, on: addresses.loop, holding: nil)
    }

    /// Creates a client on the given event loop and retains its `owner`; for tests.
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
        connectionLease = ClientConnectionLease(core)
        actorSystem = TrebuchetActorSystem(loops: [loop], locals: core.locals)
        actorSystem.call(connectionLease)
        actorSystem.reportUndecodable = options.reportUndecodable
        core.system = actorSystem
    }

    /// Connects, and reconnects from then on according to `options.reconnect`; streams continue without interruption for their
    /// readers. Returns when there is a connection. It may already be lost again at that time: see `connectionState`.
    ///
    /// Throws `TransportError` if the client gives up: `refused`, `timedOut`, `handshake` and others; `closed` after `close()`.
    /// Throws `CancellationError` when the task is cancelled; then no connection is made, unless another task, a call or a stream
    /// waits for it.
    public func connect() async throws { try await core.connection.connect(opener) }

    /// Requests a connection, unless there is one or an attempt, without waiting for it. Later calls wait for the connection.
    package func connectIfNeeded() { core.connection.connectIfNeeded(opener) }

    private var opener: ClientConnection.Opener {
        { [addresses, weak core] attempt in
            guard let core else { throw CancellationError() }
            let request: ConnectionRequest
            do {
                request = try await ConnectionRequest(core.options)
            } catch {
                // A later attempt may get a token, whatever the error of the provider.
                throw TransportError(.token, "the token for the connection is not available: \(error)", cause: error)
            }
            try await addresses.transport(of: attempt).open(request, ConnectionReceiver(core, number: attempt))
        }
    }

    /// The server's address for errors: `ws://localhost:8080`.
    package var address: String { addresses.name }

    /// The number of calls that wait for a connection.
    package var waitingCallCount: Int {
        get async {
            let core = core
            return await core.loop.perform { core.callsUnderWay(number: 0) }
        }
    }

    /// A relay whose version is 1 and increases each time the server revokes permissions of the connection
    /// (`CallerConnection.revokeAccess`).
    package var revocations: StateRelay<Void> { core.revocations }

    /// The connection state, which can be read and observed from any thread.
    public var connectionState: StateRelay<ConnectionState> { core.connection.states }

    /// Ends the connection; the client stays disconnected until the next `connect()`. In-flight calls fail with `unknownOutcome`,
    /// waiting calls with `unavailable`, and streams end. Returns when the connection is closed, or immediately when the task is
    /// cancelled.
    public func disconnect() async { await core.connection.disconnect() }

    /// Closes the client permanently. In-flight calls fail with `unknownOutcome`, and streams end. Returns when the connection is
    /// closed, or immediately when the task is cancelled.
    public func close() async { await core.connection.close() }

    /// Returns a reference to an actor at the server. Its existence is not checked; a call would fail.
    ///
    /// The reference keeps the client connected, as do references in results and states.
    public func resolve<A: DistributedActor>(_ type: A.Type, id: String) throws -> A
    where A.ActorSystem == TrebuchetActorSystem {
        try A.resolve(id: TrebuchetActorID(id, at: connectionLease), using: actorSystem)
    }

    /// Registers error types, so that calls throw errors of these types. Types in the `throws(…)` of a method need no
    /// registration.
    public func register(errors types: any (Error & Decodable).Type...) {
        for type in types { core.errors.register(type) }
    }

    /// Permits types as generic arguments of methods of the client's actors, in addition to the standard library's scalars, and
    /// arrays and dictionaries of them. Other types are rejected with `invalidArguments`.
    public func register(genericTypes types: any (Codable & Sendable).Type...) {
        for type in types { actorSystem.genericTypes.register(type) }
    }
}
