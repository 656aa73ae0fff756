@_exported public import struct Networking.TLSClientSettings
@_exported public import struct Networking.TLSServerSettings
@_exported public import TrebuchetActors
@_exported public import TrebuchetClient
@_exported public import struct WebSockets.HTTPRequestHead
@_exported public import struct WebSockets.HTTPResponse
@_exported public import struct WebSockets.PageLimits
@_exported public import struct WebSockets.WebSocketCompression
public import Networking
package import Transports
public import WebSockets

/// A server that clients of the same process reach without a socket.
protocol LocalServer: AnyObject, Sendable {
    func connectLocally(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws
}

/// The transport of clients over sockets, and to a server of the same process:
///
///     let client = TrebuchetClient(transport: .webSocket(url: "wss://example.com"))
public struct TrebuchetTransport: ClientTransport, LoopTransport {
    /// The kinds of transports.
    enum Kind: Sendable {
        case webSocket(host: String, port: Int, TLSClientSettings?)
        case url(String, TLSClientSettings)
        case local(any LocalServer)
    }

    let kind: Kind
    private var compression: WebSocketCompression?

    init(_ kind: Kind) { self.kind = kind }

    /// The address of the server, for messages: `ws://localhost:8080`.
    public var address: String {
        switch kind {
        case .webSocket(let host, let port, let tls):
            "\(tls == nil ? "ws" : "wss")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        case .url(let url, _): url
        case .local: "the server in this process"
        }
    }

    /// True if the address identifies one server: unless the transport is `local`.
    public var addressIdentifiesServer: Bool { if case .local = kind { false } else { true } }

    /// Returns the transport with message compression, if the server supports it too: permessage-deflate (RFC 7692). For links with
    /// expensive bandwidth; `WebSocketCompression` describes the costs.
    public func compressed(_ settings: WebSocketCompression = WebSocketCompression()) -> TrebuchetTransport {
        var copy = self
        copy.compression = settings
        return copy
    }

    package var loop: any EventLoop { ReactorGroup.client }

    /// Connects and upgrades, within the request's timeout; returns when messages can be sent. Throws `TransportError`.
    public func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        switch kind {
        case .webSocket(_, _, let tls): try await open(request, receiver, address + "/", tls ?? TLSClientSettings())
        case .url(let url, let tls): try await open(request, receiver, url, tls)
        case .local(let server): try await server.connectLocally(request, receiver)
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

extension ClientTransport where Self == TrebuchetTransport {
    /// WebSocket over TCP, or over TLS with `tls`. The client tries each address of `host`, and starts the next attempt if the
    /// first does not succeed within 250 ms.
    ///
    /// - Parameters:
    ///   - host: An address or a name; loopback by default.
    ///   - tls: `TLSClientSettings()` trusts the roots of the system; nil, the default, for no TLS.
    public static func webSocket(
        host: String = "127.0.0.1", port: Int, tls: TLSClientSettings? = nil
    ) -> TrebuchetTransport {
        TrebuchetTransport(.webSocket(host: host, port: port, tls))
    }

    /// WebSocket over TCP, for programs whose port is a `UInt16`.
    public static func webSocket(host: String = "127.0.0.1", port: UInt16) -> TrebuchetTransport {
        webSocket(host: host, port: Int(port))
    }

    /// WebSocket at a URL: `wss://example.com/realtime?tenant=7`, with the path that a proxy maps to the server.
    ///
    /// - Parameters:
    ///   - url: Its scheme is `wss` or `https` for TLS, `ws` or `http` without, in upper or lower case. A port, a path and a
    ///     query may follow; a user name, a password or a fragment may not. An invalid URL makes `connect()` throw
    ///     `addressInvalid`.
    ///   - tls: The trusted certificate authorities of TLS. Default: the roots of the system.
    public static func webSocket(url: String, tls: TLSClientSettings = TLSClientSettings()) -> TrebuchetTransport {
        TrebuchetTransport(.url(url, tls))
    }

    /// A server in this process, reached without a socket, with the same messages; for tests and previews.
    public static func local(_ server: TrebuchetServer) -> TrebuchetTransport { TrebuchetTransport(.local(server)) }
}
