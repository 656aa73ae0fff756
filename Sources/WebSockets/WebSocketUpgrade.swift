public import Networking
public import Transports

/// A client that asks for a WebSocket, while the server decides.
public struct WebSocketUpgrade: Sendable {
    /// What the client asked for, before anything was answered.
    public let request: HTTPRequestHead
    /// The first of the server's subprotocols that the client offers; nil when it offers none of them.
    public let subprotocol: String?
    /// Who asks; behind a trusted proxy the client that it names. Nil when the system does not know it any more.
    public let remoteAddress: SocketAddress?
    /// Whether it came over TLS.
    public let isSecure: Bool
    /// The subject of the client's certificate, as `CN=ada, O=Example`, checked against the server's authorities; nil when
    /// it showed none.
    public let clientCertificateSubject: String?
    /// The reactor on which the connection lives and the handler is called.
    public let reactor: Reactor

    /// What `admit` has found out about the client; nil without one.
    public internal(set) var admission: (any Sendable)?

    /// Whether the client may come in at all; decided before `accept`, and perhaps slowly.
    public enum Admission: Sendable {
        /// With what `accept` is to know of it.
        case admitted((any Sendable)?)
        /// The answer, for instance with status 401.
        case rejected(HTTPResponse)
    }

    /// What becomes of it.
    public enum Decision {
        /// The headers are sent beside those of the handshake. With `messageBytes`, messages and frames of this connection may have
        /// so many bytes, whatever the server's limits say of them.
        case accept(any WebSocketHandler, headers: HTTPHeaders = [:], messageBytes: Int? = nil)
        /// The answer, for instance with status 404 for a path that is not served.
        case reject(HTTPResponse)
    }
}
