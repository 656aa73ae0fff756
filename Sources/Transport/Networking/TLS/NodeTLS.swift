internal import COpenSSL
package import Transports

/// The TLS contexts of a cluster node, one for each end of its links.
///
/// Both ends present a certificate and verify that of the peer: only the authority of the cluster is trusted, not those of the
/// system, and the certificate must name a node of the same cluster. The connecting end requires the name of the node that it
/// connects to. TLS 1.3 only, without session resumption, so each link verifies the certificate again.
package final class NodeTLS: Sendable {
    /// The name in the node's certificate.
    package let name: NodeCertificateName
    package let server: TLSContext
    package let client: TLSContext

    /// Uses a certificate in memory, and trusts its authority.
    package convenience init(_ certified: CertifiedKey, authority: CertifiedKey) throws(TransportError) {
        try self.init("the certificate of this node") { (context) throws(TransportError) in
            try context.use(certified)
            try context.trust(authority)
        }
    }

    /// Reads PEM files. Throws `TransportError` of code `.tls` that names the file, also for a certificate that has expired, or
    /// that its authority has not issued.
    package convenience init(
        certificateChainFile: String, privateKeyFile: String, authorityFile: String
    ) throws(TransportError) {
        try self.init("certificate file '\(certificateChainFile)'") { (context) throws(TransportError) in
            try context.loadCertificates(certificates: certificateChainFile, key: privateKeyFile)
            try context.trust(authorityFile)
        }
    }

    private init(
        _ what: String, _ load: (TLSContext) throws(TransportError) -> Void
    ) throws(TransportError) {
        server = try TLSContext.node(isServer: true, load)
        client = try TLSContext.node(isServer: false, load)
        guard let text = server.ownCertificate.flatMap({ CertifiedKey.nodeName(of: $0) }),
            let name = NodeCertificateName(text)
        else {
            throw TransportError(
                .tls,
                "\(what) is not that of a node: it has no DNS name of the form NODE.CLUSTER.\(NodeCertificateName.domain)"
            )
        }
        self.name = name
        try server.verifyOwnCertificate(what)
        server.requirePeer(ofCluster: name.cluster)
    }

    /// Returns the name that the certificate of another node of the cluster has.
    package func name(of node: String) -> NodeCertificateName {
        NodeCertificateName(node: node, cluster: name.cluster)
    }

    /// The time until the certificate of this node expires; negative afterwards.
    package var remainingTime: Duration { server.ownCertificate.map { CertifiedKey.remainingTime(of: $0) } ?? .zero }
}

extension TLSContext {
    /// A certificate's names are compared without wildcards, and its subject is not one of them.
    static let nameFlags = UInt32(X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
    /// The maximum size of a peer's certificates, which are read before it is authenticated.
    private static let maximumPeerCertificates = 16 << 10
    /// The maximum number of certificates between that of a node and the authority.
    private static let maximumIntermediates: Int32 = 3
    private static let version13 = 0x0304
    /// Sends no more than the certificates of the file; otherwise OpenSSL adds the authority, which the peer has.
    private static let noAutomaticChain = 0x8  // SSL_MODE_NO_AUTO_CHAIN
    // Constants that are macros in OpenSSL.
    private static let setMaximumCertificates: Int32 = 51
    private static let getChainCertificates: Int32 = 115

    fileprivate static func node(
        isServer: Bool, _ load: (TLSContext) throws(TransportError) -> Void
    ) throws(TransportError) -> TLSContext {
        let context = try TLSContext(isServer: isServer, verifiesHost: true, sendsServerName: false)
        let pointer = context.pointer
        SSL_CTX_ctrl(pointer, setMode, noAutomaticChain, nil)
        SSL_CTX_ctrl(pointer, setMinimumVersion, version13, nil)
        SSL_CTX_ctrl(pointer, setMaximumCertificates, maximumPeerCertificates, nil)
        SSL_CTX_ctrl(pointer, setSessionCacheMode, Int(SSL_SESS_CACHE_OFF), nil)
        SSL_CTX_set_num_tickets(pointer, 0)
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        SSL_CTX_set_verify_depth(pointer, maximumIntermediates)
        X509_VERIFY_PARAM_set_hostflags(SSL_CTX_get0_param(pointer), nameFlags)
        try load(context)
        return context
    }

    fileprivate func use(_ certified: CertifiedKey) throws(TransportError) {
        guard SSL_CTX_use_certificate(pointer, certified.certificate) == 1,
            SSL_CTX_use_PrivateKey(pointer, certified.key) == 1
        else { throw TLSFailure.current("the certificate of this node") }
    }

    fileprivate func trust(_ authority: CertifiedKey) throws(TransportError) {
        guard X509_STORE_add_cert(SSL_CTX_get_cert_store(pointer), authority.certificate) == 1 else {
            throw TLSFailure.current("the certificate authority of the cluster")
        }
    }

    fileprivate var ownCertificate: OpaquePointer? { SSL_CTX_get0_certificate(pointer) }

    /// Throws if peers with the same authority would reject the certificate: a mistake is noticed at the start.
    fileprivate func verifyOwnCertificate(_ what: String) throws(TransportError) {
        guard let certificate = ownCertificate, let check = X509_STORE_CTX_new() else { throw TLSFailure.current(what) }
        defer { X509_STORE_CTX_free(check) }
        var chain: OpaquePointer?
        _ = withUnsafeMutablePointer(to: &chain) { SSL_CTX_ctrl(pointer, Self.getChainCertificates, 0, $0) }
        guard X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(pointer), certificate, chain) == 1 else {
            throw TLSFailure.current(what)
        }
        guard X509_verify_cert(check) != 1 else { return }
        ERR_clear_error()
        let result = X509_STORE_CTX_get_error(check)
        let reason = String(cString: X509_verify_cert_error_string(Int(result)))
        throw TransportError(.tls, "\(what) is not valid for its authority: \(reason)")
    }

    /// Accepts only certificates of nodes of this cluster.
    fileprivate func requirePeer(ofCluster cluster: String) {
        X509_VERIFY_PARAM_set1_host(
            SSL_CTX_get0_param(pointer), NodeCertificateName.suffix(ofCluster: cluster), 0)
    }
}
