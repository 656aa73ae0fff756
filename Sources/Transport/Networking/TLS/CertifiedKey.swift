internal import COpenSSL
package import Transports

/// A certificate with its private key, in memory: that of a cluster's authority, or of a node.
package final class CertifiedKey: Sendable {
    /// The time before its creation from which a certificate is valid, for peers whose clocks are behind.
    private static let clockSkew = 86_400
    /// The end of a certificate that does not expire (RFC 5280 §4.1.2.5).
    private static let never = "99991231235959Z"
    private static let ascii: Int32 = 0x1001  // MBSTRING_ASC, a macro
    private static let version3 = 2

    // `nonisolated(unsafe)`: OpenSSL counts references to certificates and keys, and nothing changes them after their creation.
    nonisolated(unsafe) let certificate: OpaquePointer
    nonisolated(unsafe) let key: OpaquePointer

    /// Takes ownership of both.
    private init(_ certificate: OpaquePointer, _ key: OpaquePointer) {
        self.certificate = certificate
        self.key = key
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    // MARK: Creation

    /// Creates the authority of a new cluster, with a random identifier of the cluster.
    ///
    /// - Parameter lifetime: the time for which it is valid; nil for an authority that does not expire.
    package static func makeAuthority(validFor lifetime: Duration?) throws(TransportError) -> CertifiedKey {
        var random = SystemRandomNumberGenerator()
        let cluster = (0..<2).map { _ in
            let digits = String(random.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }.joined()
        return try make(
            "trebuchet cluster \(cluster)",
            [
                (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign,cRLSign"),
                (NID_subject_alt_name, "DNS:\(cluster).\(NodeCertificateName.domain)"),
                (NID_subject_key_identifier, "hash"),
            ], validFor: lifetime, signedBy: nil)
    }

    /// Issues a certificate with a new key, for both ends of a node's links.
    ///
    /// - Parameters:
    ///   - node: a valid name of a node.
    ///   - lifetime: the time for which it is valid; nil for a certificate that does not expire.
    package func issue(to node: String, validFor lifetime: Duration?) throws(TransportError) -> CertifiedKey {
        guard let cluster = authorityCluster else {
            throw TransportError(.tls, "the certificate is not the authority of a cluster")
        }
        return try Self.make(
            node,
            [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth,clientAuth"),
                (NID_subject_alt_name, "DNS:\(NodeCertificateName(node: node, cluster: cluster).text)"),
                (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
            ], validFor: lifetime, signedBy: self)
    }

    private static func make(
        _ subject: String, _ extensions: [(Int32, String)], validFor lifetime: Duration?, signedBy issuer: CertifiedKey?
    ) throws(TransportError) -> CertifiedKey {
        guard OpenSSL.isInitialized, let certificate = X509_new() else { throw TLSFailure.current(making) }
        let key: OpaquePointer
        do throws(TransportError) {
            key = try makeKey()
        } catch {
            X509_free(certificate)
            throw error
        }
        let made = CertifiedKey(certificate, key)
        let signer = issuer ?? made
        var random = SystemRandomNumberGenerator()
        let end = X509_getm_notAfter(certificate)
        let isEndSet =
            lifetime.map { X509_gmtime_adj(end, Int($0.components.seconds)) != nil }
            ?? (ASN1_TIME_set_string(end, never) == 1)
        let name = X509_get_subject_name(certificate)
        guard isEndSet, X509_gmtime_adj(X509_getm_notBefore(certificate), -clockSkew) != nil,
            X509_set_version(certificate, version3) == 1,
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), random.next() >> 1) == 1,
            X509_set_pubkey(certificate, key) == 1,
            X509_NAME_add_entry_by_txt(name, "CN", ascii, subject, -1, -1, 0) == 1,
            X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate)) == 1
        else { throw TLSFailure.current(making) }
        for (kind, value) in extensions {
            var context = X509V3_CTX()
            X509V3_set_ctx(&context, signer.certificate, certificate, nil, nil, 0)
            guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else { throw TLSFailure.current(making) }
            defer { X509_EXTENSION_free(made) }
            guard X509_add_ext(certificate, made, -1) == 1 else { throw TLSFailure.current(making) }
        }
        guard X509_sign(certificate, signer.key, EVP_sha256()) > 0 else { throw TLSFailure.current(making) }
        return made
    }

    private static let making = "making a certificate"

    private static func makeKey() throws(TransportError) -> OpaquePointer {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { throw TLSFailure.current("making a key") }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1, let key
        else { throw TLSFailure.current("making a key") }
        return key
    }

    // MARK: Text

    /// Reads a certificate and its key in PEM format; each may precede the other in one text.
    package convenience init(certificate: [UInt8], key: [UInt8]) throws(TransportError) {
        guard OpenSSL.isInitialized, let certificate = Self.read(certificate, { PEM_read_bio_X509($0, nil, nil, nil) })
        else { throw TLSFailure.current("the certificate") }
        // OpenSSL's default callback prompts at the terminal for a passphrase.
        guard let key = Self.read(key, { PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil) }) else {
            X509_free(certificate)
            throw TLSFailure.current("the private key")
        }
        self.init(certificate, key)
        guard X509_check_private_key(certificate, key) == 1 else {
            throw TLSFailure.current("the private key does not belong to the certificate")
        }
    }

    private static func read(_ text: [UInt8], _ parse: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
        text.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
            defer { BIO_free(bio) }
            return parse(bio)
        }
    }

    /// The certificate in PEM format.
    package var certificateText: [UInt8] { Self.text { PEM_write_bio_X509($0, certificate) } }
    /// The private key in PEM format (PKCS #8), without a passphrase.
    package var keyText: [UInt8] { Self.text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) } }

    private static func text(_ write: (OpaquePointer) -> Int32) -> [UInt8] {
        // unreachable from data: OpenSSL writes what it has read or made, unless there is no memory.
        guard let bio = BIO_new(BIO_s_mem()), write(bio) == 1 else { fatalError("writing PEM: out of memory") }
        defer { BIO_free(bio) }
        var text: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        while case let count = BIO_read(bio, &part, Int32(part.count)), count > 0 { text += part[..<Int(count)] }
        return text
    }

    // MARK: Properties

    /// The identifier of the cluster whose authority this is; nil for other certificates.
    package var authorityCluster: String? {
        guard X509_check_ca(certificate) > 0, let name = Self.nodeName(of: certificate) else { return nil }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 2 && !parts[0].isEmpty ? String(parts[0]) : nil
    }

    /// The time until the certificate expires; negative afterwards.
    package var remainingTime: Duration { Self.remainingTime(of: certificate) }

    /// Returns the name of a certificate in the domain of nodes; nil without one.
    static func nodeName(of certificate: OpaquePointer) -> String? {
        var found: UnsafeMutablePointer<CChar>?
        defer { CRYPTO_free(found, nil, 0) }
        guard X509_check_host(certificate, ".\(NodeCertificateName.domain)", 0, TLSContext.nameFlags, &found) == 1
        else { return nil }
        return found.map { String(cString: $0) }
    }

    static func remainingTime(of certificate: OpaquePointer) -> Duration {
        var (days, seconds): (Int32, Int32) = (0, 0)
        guard ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(certificate)) == 1 else { return .zero }
        return .seconds(Int(days) * 86_400 + Int(seconds))
    }
}
