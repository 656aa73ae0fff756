public import Networking
internal import Platform
public import Transports
public import Trebuchet

/// The inspector: a developer's view of a running server.
extension TrebuchetServer {
    /// The address and the credentials of the inspector.
    public struct Inspector: Sendable, CustomStringConvertible {
        /// The address that the inspector listens on.
        public let address: SocketAddress
        /// Whether the inspector uses TLS, so that its URL begins with `https:`.
        public let isSecure: Bool
        /// The required token of each request, as `Authorization: Bearer …`. It is valid until the server ends.
        public let token: String
        /// The URL with the token, for a browser or for `trebuchet inspect --url`. The token is in the fragment, which browsers
        /// do not send.
        public var urlWithToken: String { "\(url)#token=\(token)" }
        /// The URL without the token.
        public var url: String { "\(isSecure ? "https" : "http")://\(address)/" }
        /// The URL without the token, so that printing the value does not disclose it.
        public var description: String { url }
    }

    /// Opens the developer inspector at a separate address, until the server ends. May be called once, before or after `start`.
    ///
    /// It serves JSON under `/inspect/…` (`Docs/Guides/Observability.md` has the paths), with names of actors and of principals and states of
    /// actors in it; at `/` is a page that shows all of it. The token is needed for each request but that for the page, and
    /// the names and pages of others are refused. It records calls and versions only during its use, and for 30 s after that.
    ///
    /// - Parameters:
    ///   - host: a loopback address, by default 127.0.0.1; other addresses require `tls` and `token`.
    ///   - port: 0, the default, selects a free port.
    ///   - tls: makes it `https:`.
    ///   - token: 16 bytes or more. Nil, the default, generates one of 256 random bits.
    ///   - writes: whether inspector clients may also call methods, as any principal, and close connections. Each use is
    ///     logged. By default
    ///     the inspector is read-only.
    /// - Throws: `TransportError`: `addressInvalid` for an address that is not loopback without `tls` and `token`, for a token
    ///   that is too short, for a second inspector and after the end; else as `start`.
    public func openInspector(
        host: String = "127.0.0.1", port: Int = 0, tls: TLSServerSettings? = nil, token requestedToken: String? = nil,
        writes: Bool = false
    ) throws(TransportError) -> Inspector {
        try AdminRequestGuard.check("the inspector", at: host, tls, requestedToken)
        let token = requestedToken ?? RandomToken.make() + RandomToken.make()
        // Separate reactors, so that the inspector responds even while those of the server are blocked.
        let reactors = try ReactorGroup.clients()
        let endpoint = InspectorEndpoint(self, token: token, writes: writes, on: reactors)
        let address = try openEndpoint(
            "inspector", at: host, isProtected: tls != nil && requestedToken != nil, shutDown: endpoint.shutDown
        ) { () throws(TransportError) in
            try endpoint.listen(host: host, port: port, tls: tls, on: reactors)
        }
        if let tls { certificates.read(tls.certificateChainFile, of: "inspector") }
        return Inspector(address: address, isSecure: tls != nil, token: token)
    }
}
