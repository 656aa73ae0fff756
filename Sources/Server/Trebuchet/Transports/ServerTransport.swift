public import Networking
public import WebSockets

/// The transport of a server: the address that it listens on, with TLS and compression.
public struct ServerTransport: Sendable {
    let host: String
    let port: Int
    let tls: TLSServerSettings?
    private(set) var compression: WebSocketCompression?

    /// WebSocket over TCP, or over TLS with `tls`. The server listens on each address of `host`.
    ///
    /// - Parameters:
    ///   - host: `"127.0.0.1"`, the default, for this machine; `"::"` for all machines over IPv6 and IPv4, `"0.0.0.0"` for IPv4
    ///     only; `"::1"`, or a name.
    ///   - port: 0 selects a free port.
    ///   - tls: The certificate and its key; nil, the default, for no TLS.
    public static func webSocket(
        host: String = "127.0.0.1", port: Int, tls: TLSServerSettings? = nil
    ) -> ServerTransport {
        ServerTransport(host: host, port: port, tls: tls)
    }

    /// WebSocket over TCP, for programs whose port is a `UInt16`.
    public static func webSocket(host: String = "127.0.0.1", port: UInt16) -> ServerTransport {
        webSocket(host: host, port: Int(port))
    }

    /// Returns the transport with message compression for clients that support it: permessage-deflate (RFC 7692). For links with
    /// expensive bandwidth; `WebSocketCompression` describes the costs.
    public func compressed(_ settings: WebSocketCompression = WebSocketCompression()) -> ServerTransport {
        var copy = self
        copy.compression = settings
        return copy
    }
}
