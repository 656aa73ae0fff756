public import Networking
public import Transports

/// An upgrade request that awaits the server's decision.
public struct WebSocketUpgrade: Sendable {
    /// The client's request.
    public let request: HTTPRequestHead
    /// The first of the server's subprotocols that the client offers; nil if it offers none of them.
    public let subprotocol: String?
    /// The address of the client; behind a trusted proxy the address that the proxy names. Nil if the system no longer knows it.
    public let remoteAddress: SocketAddress?
    /// A Boolean value that indicates whether the connection uses TLS.
    public let isSecure: Bool
    /// The subject of the client's certificate, as `CN=ada, O=Example`, verified against the server's authorities; nil without
    /// one.
    public let clientCertificateSubject: String?
    /// The name in the client's certificate that the server required; nil if it required none.
    package let clientCertificateName: String?
    /// The reactor that runs the connection and calls the handler.
    public let reactor: Reactor

    /// The value from `admit` about the client; nil without `admit`.
    public internal(set) var admission: (any Sendable)?

    /// The decision on a client's admission; made before `accept`, possibly after some time.
    public enum Admission: Sendable {
        /// Admits the client, with a value for `accept`.
        case admitted((any Sendable)?)
        /// Rejects the client with a response, for example of status 401.
        case rejected(HTTPResponse)
    }

    /// The decision on an upgrade.
    public enum Decision {
        /// Accepts the upgrade. The headers are sent in addition to those of the handshake. `messageBytes` overrides the server's
        /// limits on messages and frames for this connection.
        case accept(any WebSocketHandler, headers: HTTPHeaders = [:], messageBytes: Int? = nil)
        /// Rejects the upgrade with a response, for example of status 404 for an unknown path.
        case reject(HTTPResponse)
    }
}
