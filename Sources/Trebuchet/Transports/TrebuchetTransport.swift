@_exported public import struct Networking.TLSClientSettings
@_exported public import struct Networking.TLSServerSettings
@_exported public import TrebuchetActors
@_exported public import TrebuchetClient
@_exported public import struct WebSockets.HTTPRequestHead
@_exported public import struct WebSockets.PageLimits
@_exported public import struct WebSockets.WebSocketCompression
public import Networking
public import WebSockets

/// A server that clients of its own process reach without a socket.
protocol LocalServer: AnyObject, Sendable {
    func connectLocally(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws
}

/// How clients and servers reach each other.
public struct TrebuchetTransport: Sendable {
    enum Kind: Sendable {
        case webSocket(host: String, port: Int, Security)
        /// For clients alone.
        case url(String, TLSClientSettings)
        case local(any LocalServer)
    }

    enum Security: Sendable {
        case none
        case server(TLSServerSettings)
        case client(TLSClientSettings)
    }

    let kind: Kind
    private(set) var compression: WebSocketCompression?

    /// The server, for messages: `ws://localhost:8080`.
    public var address: String {
        switch kind {
        case .webSocket(let host, let port, let security):
            "\(security.scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        case .url(let url, _): url
        case .local: "the server in this process"
        }
    }

    /// Whether the description tells one server from another.
    public var addressIdentifiesServer: Bool { if case .local = kind { false } else { true } }

    /// WebSocket over TCP. For a server the address to listen on (`"127.0.0.1"`, `"::1"`, `"0.0.0.0"`, `"::"`, a name; port 0
    /// takes a free one), for a client the server's. Without a host it is this machine's own: a server that others are to reach
    /// listens on `"::"`, which takes connections over IPv6 and IPv4, or on `"0.0.0.0"`, over IPv4 alone. A server listens on each
    /// address of a name; a client tries each, the next one beside a first that does not answer within 250 ms.
    public static func webSocket(host: String = "127.0.0.1", port: Int) -> TrebuchetTransport {
        TrebuchetTransport(kind: .webSocket(host: host, port: port, .none))
    }

    /// The same, for programs that keep a port as the system does.
    public static func webSocket(host: String = "127.0.0.1", port: UInt16) -> TrebuchetTransport {
        webSocket(host: host, port: Int(port))
    }

    /// WebSocket over TLS, for a server; without TLS where `tls` is nil.
    public static func webSocket(host: String = "127.0.0.1", port: Int, tls: TLSServerSettings?) -> TrebuchetTransport {
        TrebuchetTransport(kind: .webSocket(host: host, port: port, tls.map { .server($0) } ?? .none))
    }

    // Of `tls: nil` nobody knows which is meant, and both mean the same.
    /// WebSocket over TLS, for a client; without TLS where `tls` is nil. `TLSClientSettings()` trusts the roots of the system.
    @_disfavoredOverload
    public static func webSocket(host: String = "127.0.0.1", port: Int, tls: TLSClientSettings?) -> TrebuchetTransport {
        TrebuchetTransport(kind: .webSocket(host: host, port: port, tls.map { .client($0) } ?? .none))
    }

    /// WebSocket at a URL, for a client: `wss://example.com/realtime?tenant=7`, with the path that a proxy leads to the server.
    ///
    /// - Parameters:
    ///   - url: its scheme is `wss` or `https` for TLS, `ws` or `http` without, in upper or lower case. A port, a path and a query may
    ///     follow; a user name, a password or a fragment may not. A URL that is invalid makes `connect()` throw `addressInvalid`.
    ///   - tls: whom to trust with TLS. Default: the roots of the system.
    public static func webSocket(url: String, tls: TLSClientSettings = TLSClientSettings()) -> TrebuchetTransport {
        TrebuchetTransport(kind: .url(url, tls))
    }

    /// The same, but that messages are compressed when the other side wants it, too: permessage-deflate (RFC 7692). For
    /// links on which bytes are dear; `WebSocketCompression` says what it costs.
    public func compressed(_ settings: WebSocketCompression = WebSocketCompression()) -> TrebuchetTransport {
        var copy = self
        copy.compression = settings
        return copy
    }
}

extension TrebuchetTransport.Security {
    var scheme: String { if case .none = self { "ws" } else { "wss" } }
}
