@_exported public import class Networking.Reactor
@_exported public import struct Networking.ReactorGroup
@_exported public import struct Networking.TLSClientSettings
@_exported public import struct Networking.TLSServerSettings
@_exported public import struct Transports.HTTPHeaders
@_exported public import struct Transports.SocketAddress
@_exported public import struct Transports.TransportError
@_exported public import struct Transports.UnexpectedHTTPStatus
public import Networking
public import Transports

/// Opens WebSockets to servers.
public enum WebSocketClient {
    /// Connects to `ws://host:port/path` or `wss://host:port/path` and performs the handshake. `makeHandler` is called on the
    /// reactor of the new socket, before any input is read.
    ///
    /// - Parameters:
    ///   - subprotocols: the subprotocols that the server can choose from, in order of preference.
    ///   - headers: fields sent in addition to those of the handshake, such as `Authorization`.
    ///   - tls: the trust settings for `wss:`.
    ///   - compression: the compression to offer to the server; nil, the default, for none.
    ///   - reactors: the socket runs on one of them; by default on the process's reactor for clients.
    /// - Throws: `TransportError`: `.addressInvalid`, `.refused`, `.timedOut`, `.closed`, `.tls`, and `.handshake` for every
    ///   response but a valid 101, including redirects (then the cause is an `UnexpectedHTTPStatus`); `CancellationError`.
    public static func connect(
        to url: String, subprotocols: [String] = [], headers: HTTPHeaders = [:],
        limits: WebSocketLimits = WebSocketLimits(), tls: TLSClientSettings = TLSClientSettings(),
        compression: WebSocketCompression? = nil, reactors: ReactorGroup? = nil,
        makeHandler: @escaping @Sendable (WebSocket) -> any WebSocketHandler
    ) async throws -> WebSocket {
        try await connect(
            to: WebSocketURL(url), subprotocols: subprotocols, headers: headers, limits: limits,
            compression: compression, reactors: reactors, context: { try TLSContext.client(tls) },
            makeHandler: makeHandler)
    }

    /// Connects with a TLS context.
    ///
    /// - Parameters:
    ///   - peerName: the name that the certificate of the server must have; nil for the host of the URL.
    ///   - context: returns the context for `wss:`.
    package static func connect(
        to parsed: WebSocketURL, peerName: String? = nil, subprotocols: [String], headers: HTTPHeaders,
        limits: WebSocketLimits, compression: WebSocketCompression? = nil, reactors: ReactorGroup? = nil,
        context: @Sendable () throws -> TLSContext,
        makeHandler: @escaping @Sendable (WebSocket) -> any WebSocketHandler
    ) async throws -> WebSocket {
        guard let reactor = try (reactors ?? ReactorGroup.clients()).reactors.randomElement() else {
            throw TransportError(.system, "the reactor group is empty")
        }
        // Runs on the reactor: between connection and request nothing waits for a thread of the concurrency pool. All of its
        // threads could be busy while the server's time limit for the handshake expires.
        return try await withTaskExecutorPreference(reactor.tasks) {
            let channel = try await Connector.connect(
                host: parsed.host, port: parsed.port, on: reactor, timeout: limits.handshakeTimeout)
            if parsed.isSecure { try channel.secure(with: context(), host: peerName ?? parsed.host) }
            let handshake = ClientHandshake(
                url: parsed, subprotocols: subprotocols, headers: headers, compression: compression?.bounded)
            let upgrade = LoopBound(
                passing: ClientUpgrade(channel, handshake, limits: limits, makeHandler: makeHandler), to: reactor)
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    reactor.execute { upgrade.value.start(continuation) }
                }
            } onCancel: {
                reactor.execute { upgrade.value.cancel() }
            }
        }
    }
}
