@_exported public import class Networking.Reactor
@_exported public import struct Networking.ReactorGroup
@_exported public import struct Networking.TLSClientSettings
@_exported public import struct Networking.TLSServerSettings
@_exported public import struct Transports.HTTPHeaders
@_exported public import struct Transports.SocketAddress
@_exported public import struct Transports.TransportError
@_exported public import struct Transports.UnexpectedStatus
public import Networking
public import Transports

/// Opens WebSockets to servers.
public enum WebSocketClient {
    /// Connects to `ws://host:port/path` or `wss://host:port/path` and shakes hands. `makeHandler` is called on the reactor of the new socket,
    /// before anything is read from it.
    ///
    /// - Parameters:
    ///   - subprotocols: what the server may choose from, in the order of preference.
    ///   - headers: sent beside those of the handshake, for instance `Authorization`.
    ///   - tls: whom to trust with `wss:`.
    ///   - compression: offers the server to compress messages; nil, the default, for never.
    ///   - reactors: the socket lives on one of them; the process's reactor for clients unless given.
    /// - Throws: `TransportError`: `.addressInvalid`, `.refused`, `.timedOut`, `.closed`, `.tls`, and `.handshake` for every
    ///   answer but a valid 101, redirects among them (the cause is an `UnexpectedStatus` then); `CancellationError`.
    public static func connect(
        to url: String, subprotocols: [String] = [], headers: HTTPHeaders = [:],
        limits: WebSocketLimits = WebSocketLimits(), tls: TLSClientSettings = TLSClientSettings(),
        compression: WebSocketCompression? = nil, reactors: ReactorGroup? = nil,
        makeHandler: @escaping @Sendable (WebSocket) -> any WebSocketHandler
    ) async throws -> WebSocket {
        let parsed = try WebSocketURL(url)
        guard let reactor = try (reactors ?? ReactorGroup.clients()).reactors.randomElement() else {
            throw TransportError(.system, "the group has no reactors")
        }
        // On the reactor: between the connection and the request nobody waits for a thread of the pool, which others may
        // hold while the server's time for the handshake runs out.
        return try await withTaskExecutorPreference(reactor.tasks) {
            let channel = try await Connector.connect(
                host: parsed.host, port: parsed.port, on: reactor, timeout: limits.handshakeTimeout)
            if parsed.isSecure { try channel.secure(with: TLSContext.client(tls), host: parsed.host) }
            let handshake = ClientHandshake(
                url: parsed, subprotocols: subprotocols, headers: headers, compression: compression?.bounded)
            let upgrade = ClientUpgrade(channel, handshake, limits: limits, makeHandler: makeHandler)
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    reactor.execute { upgrade.start(continuation) }
                }
            } onCancel: {
                reactor.execute { upgrade.cancel() }
            }
        }
    }
}
