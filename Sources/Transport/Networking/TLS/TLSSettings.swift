/// The certificate settings of a server (TLS 1.2 and 1.3). Files are in PEM format.
public struct TLSServerSettings: Sendable {
    /// The path of the server's certificate, followed by the intermediate certificates.
    public var certificateChainFile: String
    /// The path of the certificate's private key.
    public var privateKeyFile: String
    /// The path of the certificate authorities for client certificates; nil requests none.
    public var clientAuthorityFile: String?
    /// Whether a client without a certificate is rejected; applies only with a `clientAuthorityFile`. Default true.
    public var requiresClientCertificate = true

    /// Creates settings from file paths.
    public init(certificateChainFile: String, privateKeyFile: String, clientAuthorityFile: String? = nil) {
        self.certificateChainFile = certificateChainFile
        self.privateKeyFile = privateKeyFile
        self.clientAuthorityFile = clientAuthorityFile
    }
}

/// The trust settings of a client (TLS 1.2 and 1.3). Files are in PEM format and read once per process.
public struct TLSClientSettings: Hashable, Sendable {
    /// The trust anchors of a client.
    public enum Trust: Hashable, Sendable {
        /// The roots of the system.
        case system
        /// Only the certificate authorities in a file.
        case file(String)
        /// No verification of certificate and host name. Only for tests.
        case insecure
    }

    /// The trust anchors. Default: the roots of the system.
    public var trust = Trust.system
    /// The name that the server's certificate must have, also sent as SNI. Default: the host of the URL.
    public var serverName: String?
    /// The path of the client's certificate, followed by the intermediate certificates, for servers that request one.
    public var certificateChainFile: String?
    /// The path of the client's private key; nil if it is in `certificateChainFile`.
    public var privateKeyFile: String?

    /// Creates settings.
    public init(trust: Trust = .system) { self.trust = trust }
}
