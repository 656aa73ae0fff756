package import Bytes
public import Networking
public import Transports

/// A WebSocket server (RFC 6455) that can also respond to plain HTTP requests.
public final class WebSocketServer: Sendable {
    private let listener: Listener
    private let identity: TLSServerIdentity?
    /// The connection tables, one for each reactor.
    let tables: [ConnectionTable.Handle]

    /// Creates a server that listens immediately. Port 0 takes a free one: see `address`.
    ///
    /// - Parameters:
    ///   - reactors: the reactors of the connections; by default as many as the machine has cores.
    ///   - subprotocols: the supported subprotocols, in order of preference.
    ///   - tls: makes it a server only for `wss:`.
    ///   - compression: the message compression with clients that offer it; nil, the default, for none.
    ///   - check: called first with the head of every request, including plain ones, and the local address. It returns a
    ///     response, or
    ///     nil to continue. Called on a reactor, must not block.
    ///   - admit: decides on the admission of a client; may take as long as the handshake. Runs in a task on the connection's
    ///     reactor.
    ///   - http: responds to a plain GET or HEAD, such as `/healthz`; nil gives 426. Called on a reactor, must not block.
    ///   - accept: decides on each upgrade; called on the reactor of the connection, must not block.
    /// - Throws: `TransportError`: `.addressInUse`, `.addressInvalid`, `.tls`, `.system`. Resolving a host name blocks.
    public convenience init(
        host: String = "127.0.0.1", port: Int, reactors: ReactorGroup? = nil, subprotocols: [String] = [],
        limits: WebSocketLimits = WebSocketLimits(), tls: TLSServerSettings? = nil,
        compression: WebSocketCompression? = nil,
        check: (@Sendable (_ request: HTTPRequestHead, _ localAddress: SocketAddress?) -> HTTPResponse?)? = nil,
        admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)? = nil,
        http: @escaping @Sendable (HTTPRequestHead) -> HTTPResponse? = { _ in nil },
        accept: @escaping @Sendable (WebSocketUpgrade) -> WebSocketUpgrade.Decision
    ) throws(TransportError) {
        try self.init(
            host: host, port: port, reactors: reactors, subprotocols: subprotocols, limits: limits, tls: tls,
            compression: compression, memory: nil, proxies: .none, check: check, admit: admit,
            plain: { http($0.head).map { .last($0) } }, accept: accept)
    }

    /// Creates a server with further options:
    ///
    /// - `memory`: a shared budget for buffered memory; nil for a budget of `limits.bufferedBytes`.
    /// - `proxies`: connections from them count for the clients that they name.
    /// - `plain`: responds to requests other than upgrades, including pages; with `acceptsPost` also to POST without a body.
    /// - `handled`: responds, before `plain`, to requests of any method, which may have a body; nil continues with `plain`.
    /// - `reservedDescriptors`: the number of descriptors to leave free; `onDescriptorExhaustion` is called each time that connections start to wait for
    ///   some.
    /// - `refused`: called for each response with a status of at least 400, and for connections closed without one.
    /// - `context`: the TLS context for new connections, instead of `tls`.
    /// - `failedTLS`: called for each connection that ends with an error of TLS, which names the peer, before its request.
    /// - `makesRoom`: at the connection limit, a new connection evicts the one that has waited longest without a request in
    ///   progress, so that silent connections cannot exhaust the limit.
    package init(
        host: String = "127.0.0.1", port: Int, reactors: ReactorGroup? = nil, subprotocols: [String] = [],
        limits: WebSocketLimits = WebSocketLimits(), tls: TLSServerSettings? = nil,
        compression: WebSocketCompression? = nil, memory: MemoryBudget?, proxies: TrustedProxies = .none,
        check: (@Sendable (_ request: HTTPRequestHead, _ localAddress: SocketAddress?) -> HTTPResponse?)? = nil,
        admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)? = nil,
        plain: @escaping @Sendable (PlainRequest) -> PlainResponse? = { _ in nil },
        handled: (@Sendable (PlainRequest) -> PlainResponse?)? = nil,
        accept: @escaping @Sendable (WebSocketUpgrade) -> WebSocketUpgrade.Decision,
        refused: (@Sendable (HTTPResponse, SocketAddress?) -> Void)? = nil, acceptsPost: Bool = false,
        context: (@Sendable () -> TLSContext)? = nil,
        failedTLS: (@Sendable (TransportError) -> Void)? = nil,
        makesRoom: Bool = false, reservedDescriptors: Int = 0, onDescriptorExhaustion: (@Sendable () -> Void)? = nil
    ) throws(TransportError) {
        let group: ReactorGroup
        if let reactors { group = reactors } else { group = try ReactorGroup.servers() }
        let configuration = ServerConfiguration(
            limits: limits, memory: memory, proxies: proxies, subprotocols: subprotocols, compression: compression,
            reactors: group.reactors.count, check: check, admit: admit, plain: plain,
            handled: handled, accept: accept, refused: refused, failedTLS: failedTLS, acceptsPost: acceptsPost)
        let identity: TLSServerIdentity?
        if let tls { identity = try TLSServerIdentity(tls) } else { identity = nil }
        self.identity = identity
        let tables = group.reactors.map {
            ConnectionTable.Handle(reactor: $0, beat: configuration.times.keepalive.beat)
        }
        self.tables = tables
        listener = try Listener.bind(
            host: host, port: port, reactors: group.reactors, reservedDescriptors: reservedDescriptors,
            onDescriptorExhaustion: onDescriptorExhaustion
        ) { channel in
            guard let table = tables.first(where: { $0.reactor === channel.reactor })?.table else { return }
            if makesRoom, table.count >= configuration.connectionsPerReactor { table.makeRoom() }
            guard table.count < configuration.maximumPerReactor else {
                refused?(HTTPResponse(status: 503, text: "too many connections"), channel.remoteAddress)
                return
            }
            // The client of a proxy is known only after the head of its request.
            let isProxy = configuration.proxies.contains(channel.remoteAddress)
            var entry: CountedConnection?
            if !isProxy {
                switch configuration.addresses.enter(channel.remoteAddress) {
                case .admitted(let admitted): entry = admitted
                case .refused:
                    let text = "too many connections from this address (connections.perHost)"
                    refused?(HTTPResponse(status: 429, text: text), channel.remoteAddress)
                    return
                }
            }
            do {
                if let context = context?() ?? identity?.context {
                    try channel.secure(with: context, answerToPlainText: ServerHandshake.needsTLS)
                }
            } catch {
                return
            }
            ServerUpgrade(channel, configuration, table, entry, isProxy: isProxy).start()
        }
    }

    /// The address that it listens on, with the actual port.
    public var address: SocketAddress { listener.address }

    /// Reloads the certificates, for future connections; existing ones continue. If the files are invalid, it throws
    /// `TransportError` of code `.tls` and keeps the current certificates. Does nothing without TLS.
    public func reloadCertificates() throws(TransportError) { try identity?.reload() }

    /// Stops accepting connections; existing ones continue.
    public func stopAccepting() async { await listener.close() }

    /// Closes the connections in the handshake, and those that receive a page after its last byte; the others continue.
    package func refuseUpgrades() async {
        for table in tables { await table.refuseUpgrades() }
    }

    /// Returns when all connections affected by `refuseUpgrades` have ended; after `limit` pages are aborted.
    package func endPages(within limit: Duration) async {
        await withTaskGroup { group in
            for table in tables { group.addTask { await table.endUpgrades(within: limit) } }
        }
    }

    /// Stops accepting connections, sends a close frame to each existing one, and returns when the last has ended: after at most
    /// twice the close time limit.
    public func shutdown(code: WebSocketCloseCode = .goingAway) async {
        await listener.close()
        await withTaskGroup { group in
            for table in tables { group.addTask { await table.drain(code: code) } }
        }
    }
}
