internal import Networking
package import Transports
public import TrebuchetClient
internal import WebSockets

extension TrebuchetClient {
    /// Creates a client that is not connected yet, for a WebSocket or for a server in this process.
    public convenience init(transport: TrebuchetTransport, options: Options = Options()) {
        let any: any ClientTransport = transport
        self.init(transport: any, options: options)
    }

    /// Creates a client that is not connected yet, for a service with several servers, such as a cluster. It
    /// starts with a random server. It moves to the next one when a connection breaks, cannot be established, or is drained:
    ///
    ///     let client = TrebuchetClient(transports: [
    ///         .webSocket(host: "east.example.com", port: 443, tls: TLSClientSettings()),
    ///         .webSocket(host: "west.example.com", port: 443, tls: TLSClientSettings()),
    ///     ])
    public convenience init(transports: [TrebuchetTransport], options: Options = Options()) {
        let any: [any ClientTransport] = transports
        self.init(transports: any, options: options)
    }
}

extension TrebuchetTransport: LoopTransport {
    package var loop: any EventLoop { ReactorGroup.client }

    /// Connects and upgrades, within the request's timeout; returns when messages can be sent. Throws `TransportError`.
    public func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        switch kind {
        case .webSocket(let host, let port, let security):
            let tls: TLSClientSettings
            switch security {
            case .none: tls = TLSClientSettings()
            case .client(let settings): tls = settings
            case .server: throw TransportError(.tls, "a client requires TLSClientSettings")
            }
            let authority = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            try await open(request, receiver, "\(security.scheme)://\(authority)/", tls)
        case .url(let url, let tls): try await open(request, receiver, url, tls)
        case .local(let server):
            try await server.connectLocally(request, receiver)
        }
    }

    private func open(
        _ request: ConnectionRequest, _ receiver: ConnectionReceiver, _ url: String, _ tls: TLSClientSettings
    ) async throws {
        var limits = WebSocketLimits()
        limits.handshakeTimeout = request.timeout
        limits.messageBytes = request.messageSize
        limits.frameBytes = request.messageSize
        limits.pingInterval = request.pingInterval
        limits.pongTimeout = request.pongTimeout
        let wanted = request.subprotocol
        guard let reactor = receiver.loop as? Reactor else {
            throw TransportError(.system, "a client over sockets requires a reactor")
        }
        let socket = try await WebSocketClient.connect(
            to: url, subprotocols: [wanted], headers: request.headers,
            limits: limits, tls: tls, compression: compression, reactors: ReactorGroup([reactor])
        ) { [address] in WebSocketClientLink(receiver, $0, address, speaking: wanted) }
        guard socket.subprotocol == wanted else {
            socket.close(code: .protocolError, reason: "needs \(wanted)")
            throw TransportError(
                .handshake, "\(address) does not support \(wanted): is it a Trebuchet server?",
                cause: SubprotocolNotSupported(wanted))
        }
    }
}
