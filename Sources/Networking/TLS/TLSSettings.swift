/// How a server proves who it is (TLS 1.2 and 1.3). Files are in PEM.
public struct TLSServerSettings: Sendable {
    /// The server's certificate, followed by those that lead to its root.
    public var certificateChainFile: String
    public var privateKeyFile: String
    /// Authorities whose certificates clients may show; nil asks for none.
    public var clientAuthorityFile: String?
    /// Whether a client without a certificate is turned away; counts when there is a `clientAuthorityFile`. Default true.
    public var requiresClientCertificate = true

    public init(certificateChainFile: String, privateKeyFile: String, clientAuthorityFile: String? = nil) {
        self.certificateChainFile = certificateChainFile
        self.privateKeyFile = privateKeyFile
        self.clientAuthorityFile = clientAuthorityFile
    }
}

/// Whom a client trusts (TLS 1.2 and 1.3). Files are in PEM, and read once in the life of the process.
public struct TLSClientSettings: Hashable, Sendable {
    public enum Trust: Hashable, Sendable {
        /// The roots of the system.
        case system
        /// The authorities in a file, and no others.
        case file(String)
        /// Anybody: neither the certificate nor the host name is checked. For tests alone.
        case insecure
    }

    /// Default: the roots of the system.
    public var trust = Trust.system
    /// The name that the server's certificate must have, and that is asked for (SNI). Default: the host of the URL.
    public var serverName: String?
    /// The client's own certificate and those that lead to its root, for servers that ask for one.
    public var certificateChainFile: String?
    public var privateKeyFile: String?

    public init(trust: Trust = .system) { self.trust = trust }
}
