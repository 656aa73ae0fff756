internal import Bytes
internal import Networking
internal import Transports

/// The configuration that all connections of a server share.
final class ServerConfiguration: Sendable {
    let limits: WebSocketLimits
    let times: ConnectionTimeouts
    let addresses: AddressCounter
    let memory: ServerMemory
    let proxies: TrustedProxies
    let subprotocols: [String]
    let compression: WebSocketCompression?
    let connectionsPerReactor: Int
    /// The number of connections above which new ones are closed without a response. Between the limit and this number they get a
    /// 503 response.
    var maximumPerReactor: Int { connectionsPerReactor + max(64, connectionsPerReactor / 4) }
    let check: (@Sendable (HTTPRequestHead, SocketAddress?) -> HTTPResponse?)?
    let admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)?
    let plain: @Sendable (PlainRequest) -> PlainResponse?
    /// Consulted before `plain`, for requests of any method and with bodies; nil at a server that accepts no bodies.
    let handled: (@Sendable (PlainRequest) -> PlainResponse?)?
    let accept: @Sendable (WebSocketUpgrade) -> WebSocketUpgrade.Decision
    let refused: (@Sendable (HTTPResponse, SocketAddress?) -> Void)?
    let failedTLS: (@Sendable (TransportError) -> Void)?
    /// Indicates whether `plain` also receives POST requests.
    let acceptsPost: Bool

    init(
        limits: WebSocketLimits, memory shared: MemoryBudget?, proxies: TrustedProxies, subprotocols: [String],
        compression: WebSocketCompression?, reactors: Int,
        check: (@Sendable (HTTPRequestHead, SocketAddress?) -> HTTPResponse?)?,
        admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)?,
        plain: @escaping @Sendable (PlainRequest) -> PlainResponse?,
        handled: (@Sendable (PlainRequest) -> PlainResponse?)? = nil,
        accept: @escaping @Sendable (WebSocketUpgrade) -> WebSocketUpgrade.Decision,
        refused: (@Sendable (HTTPResponse, SocketAddress?) -> Void)?,
        failedTLS: (@Sendable (TransportError) -> Void)? = nil, acceptsPost: Bool = false
    ) {
        self.refused = refused
        self.failedTLS = failedTLS
        self.acceptsPost = acceptsPost
        self.limits = limits
        memory = ServerMemory(limits, shared: shared)
        times = ConnectionTimeouts(limits, accounts: memory)
        addresses = AddressCounter(limit: limits.connectionsPerHost)
        self.proxies = proxies
        self.subprotocols = subprotocols
        self.compression = compression?.bounded
        self.check = check
        self.admit = admit
        self.plain = plain
        self.handled = handled
        self.accept = accept
        connectionsPerReactor = max(1, limits.connections / reactors)
    }
}
