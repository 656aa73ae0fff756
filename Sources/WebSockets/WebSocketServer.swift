package import Bytes
public import Networking
public import Transports

/// A server of WebSockets (RFC 6455), with an answer for plain HTTP requests beside them.
public final class WebSocketServer: Sendable {
    private let listener: Listener
    private let identity: TLSServerIdentity?
    /// One for each reactor.
    let tables: [ConnectionTable]

    /// Listens from now on. Port 0 takes a free one: see `address`.
    ///
    /// - Parameters:
    ///   - reactors: where connections live; as many reactors as the machine has cores unless given.
    ///   - subprotocols: in the order of preference.
    ///   - tls: makes it a server of `wss:`, and of nothing else.
    ///   - compression: makes it compress messages with clients that offer it; nil, the default, for never.
    ///   - check: looks at the head of every request first, plain ones too, with the address that it came to; what it
    ///     returns is the answer, nil lets the request go on. Called on a reactor, must not block.
    ///   - admit: decides who may come in; may take as long as the handshake may. Runs in a task on the connection's reactor.
    ///   - http: answers a plain GET or HEAD, such as `/healthz`; nil gives 426. Called on a reactor, must not block.
    ///   - accept: decides on each upgrade; called on the reactor of the connection, must not block.
    /// - Throws: `TransportError`: `.addressInUse`, `.addressInvalid`, `.tls`, `.system`. Looking up a host name blocks.
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

    /// The same, which counts what it holds in a budget that it shares with others; nil for `limits.heldBytes` of its own.
    /// Connections that come from `proxies` count for those on whose behalf they come. `plain` answers what asks for no
    /// WebSocket, with pages too; also what comes with POST and without a body, where it `takesPost`. Of the process's descriptors it
    /// leaves `keptBack` to others, and `onScarcity` is told each time that connections wait for some. `refused` is told what peers are
    /// answered with a status from 400 on, or would be if they were answered. Where it `makesRoom` a connection that comes when there are as many as
    /// may takes the place of the one that has been there longest without asking for anything: nobody keeps others out by silence.
    package init(
        host: String = "127.0.0.1", port: Int, reactors: ReactorGroup? = nil, subprotocols: [String] = [],
        limits: WebSocketLimits = WebSocketLimits(), tls: TLSServerSettings? = nil,
        compression: WebSocketCompression? = nil, memory: MemoryBudget?, proxies: TrustedProxies = .none,
        check: (@Sendable (_ request: HTTPRequestHead, _ localAddress: SocketAddress?) -> HTTPResponse?)? = nil,
        admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)? = nil,
        plain: @escaping @Sendable (PlainRequest) -> PlainAnswer? = { _ in nil },
        accept: @escaping @Sendable (WebSocketUpgrade) -> WebSocketUpgrade.Decision,
        refused: (@Sendable (HTTPResponse, SocketAddress?) -> Void)? = nil, takesPost: Bool = false,
        makesRoom: Bool = false, keptBack: Int = 0, onScarcity: (@Sendable () -> Void)? = nil
    ) throws(TransportError) {
        let group: ReactorGroup
        if let reactors { group = reactors } else { group = try ReactorGroup.servers() }
        let configuration = ServerConfiguration(
            limits: limits, memory: memory, proxies: proxies, subprotocols: subprotocols, compression: compression,
            reactors: group.reactors.count, check: check, admit: admit, plain: plain, accept: accept,
            refused: refused, takesPost: takesPost)
        let identity: TLSServerIdentity?
        if let tls { identity = try TLSServerIdentity(tls) } else { identity = nil }
        self.identity = identity
        let tables = group.reactors.map { ConnectionTable(reactor: $0, beat: configuration.times.keepalive.beat) }
        self.tables = tables
        listener = try Listener.bind(
            host: host, port: port, reactors: group.reactors, keptBack: keptBack, onScarcity: onScarcity
        ) { channel in
            guard let table = tables.first(where: { $0.reactor === channel.reactor }) else { return }
            if makesRoom, table.count >= configuration.connectionsPerReactor { table.makeRoom() }
            guard table.count < configuration.mostPerReactor else {
                refused?(HTTPResponse(status: 503, text: "too many connections"), channel.remoteAddress)
                return
            }
            // For whom a proxy comes is known with the head of its request.
            let isProxy = configuration.proxies.contains(channel.remoteAddress)
            var entry: AddressEntry?
            if !isProxy {
                switch configuration.addresses.enter(channel.remoteAddress) {
                case .admitted(let admitted): entry = admitted
                case .refused:
                    let text = "as many connections come from this address as may (connectionsPerAddress)"
                    refused?(HTTPResponse(status: 429, text: text), channel.remoteAddress)
                    return
                }
            }
            do {
                if let identity {
                    try channel.secure(with: identity.context, answerToPlainText: ServerHandshake.needsTLS)
                }
            } catch {
                return
            }
            ServerUpgrade(channel, configuration, table, entry, isProxy: isProxy).start()
        }
    }

    /// Where it listens, with the real port.
    public var address: SocketAddress { listener.address }

    /// Reads the certificates again, for connections from now on; those that exist go on. Throws `TransportError` of code
    /// `.tls`, and goes on with the old ones, when the files are no good. Does nothing without TLS.
    public func reloadCertificates() throws(TransportError) { try identity?.reload() }

    /// Accepts no more connections; those that exist go on.
    public func stopAccepting() async { await listener.close() }

    /// Ends the connections whose handshake is not done, and those that get a page as soon as they have it; the others go on.
    package func refuseUpgrades() async {
        for table in tables { await table.refuseUpgrades() }
    }

    /// Returns when all that `refuseUpgrades` was to end has ended; after `limit` pages are cut.
    package func endPages(within limit: Duration) async {
        await withTaskGroup { group in
            for table in tables { group.addTask { await table.endUpgrades(within: limit) } }
        }
    }

    /// Accepts no more connections, sends each that exists a close frame, and returns when the last has gone: at most
    /// twice the close time limit later.
    public func shutdown(code: WebSocketCloseCode = .goingAway) async {
        await listener.close()
        await withTaskGroup { group in
            for table in tables { group.addTask { await table.drain(code: code) } }
        }
    }
}
