@_exported public import struct Networking.TLSClientSettings
@_exported public import struct Networking.TLSServerSettings
@_exported public import TrebuchetActors
@_exported public import TrebuchetClient
@_exported public import struct WebSockets.HTTPRequestHead
@_exported public import struct WebSockets.PageLimits
@_exported public import struct WebSockets.WebSocketCompression
public import Networking
public import WebSockets

/// A server that clients of the same process reach without a socket.
protocol LocalServer: AnyObject, Sendable {
    func connectLocally(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws
}

/// The transport between clients and servers.
public struct TrebuchetTransport: Sendable {
    /// The kinds of transports.
    enum Kind: Sendable {
        case webSocket(host: String, port: Int, Security)
        /// Clients only.
        case url(String, TLSClientSettings)
        case local(any LocalServer)
    }

    /// The TLS settings of a WebSocket transport.
    enum Security: Sendable {
        case none
        case server(TLSServerSettings)
        case client(TLSClientSettings)
    }

    let kind: Kind
    private(set) var compression: WebSocketCompression?

    /// The address of the server, for messages: `ws://localhost:8080`.
    public var address: String {
        switch kind {
        case .webSocket(let host, let port, let security):
            "\(security.scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        case .url(let url, _): url
        case .local: "the server in this process"
        }
    }

    /// Whether the address identifies one server.
    public var addressIdentifiesServer: Bool { if case .local = kind { false } else { true } }

    /// WebSocket over TCP. For a server, `host` is the address to listen on (`"127.0.0.1"`, `"::1"`, `"0.0.0.0"`, `"::"`, a
    /// name; port 0 selects a free port); for a client, the server's address. The default host is loopback. A server that
    /// accepts other machines listens on `"::"`, for IPv6 and IPv4, or on `"0.0.0.0"`, for IPv4 only. A server listens on each
    /// address of a name. A client tries each address, and starts the next attempt if the first does not succeed within 250 ms.
    public static func webSocket(host: String = "127.0.0.1", port: Int) -> TrebuchetTransport {
        TrebuchetTransport(kind: .webSocket(host: host, port: port, .none))
    }

    /// WebSocket over TCP, for programs whose port is a `UInt16`.
    public static func webSocket(host: String = "127.0.0.1", port: UInt16) -> TrebuchetTransport {
        webSocket(host: host, port: Int(port))
    }

    /// WebSocket over TLS, for a server; without TLS if `tls` is nil.
    public static func webSocket(host: String = "127.0.0.1", port: Int, tls: TLSServerSettings?) -> TrebuchetTransport {
        TrebuchetTransport(kind: .webSocket(host: host, port: port, tls.map { .server($0) } ?? .none))
    }

    // A literal `tls: nil` would be ambiguous; both overloads mean the same then.
    /// WebSocket over TLS, for a client; without TLS if `tls` is nil. `TLSClientSettings()` trusts the roots of the system.
    @_disfavoredOverload
    public static func webSocket(host: String = "127.0.0.1", port: Int, tls: TLSClientSettings?) -> TrebuchetTransport {
        TrebuchetTransport(kind: .webSocket(host: host, port: port, tls.map { .client($0) } ?? .none))
    }

    /// WebSocket at a URL, for a client: `wss://example.com/realtime?tenant=7`, with the path that a proxy maps to the server.
    ///
    /// - Parameters:
    ///   - url: its scheme is `wss` or `https` for TLS, `ws` or `http` without, in upper or lower case. A port, a path and a
    ///     query may
    ///     follow; a user name, a password or a fragment may not. An invalid URL makes `connect()` throw `addressInvalid`.
    ///   - tls: the trusted certificate authorities of TLS. Default: the roots of the system.
    public static func webSocket(url: String, tls: TLSClientSettings = TLSClientSettings()) -> TrebuchetTransport {
        TrebuchetTransport(kind: .url(url, tls))
    }

    /// Returns the transport with message compression, if the peer supports it too: permessage-deflate (RFC 7692). For links
    /// with expensive bandwidth; `WebSocketCompression` describes the costs.
    public func compressed(_ settings: WebSocketCompression = WebSocketCompression()) -> TrebuchetTransport {
        var copy = self
        copy.compression = settings
        return copy
    }
}

extension TrebuchetTransport.Security {
    var scheme: String { if case .none = self { "ws" } else { "wss" } }
}
