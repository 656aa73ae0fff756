internal import COpenSSL
internal import Networking
package import Transports

/// A signature algorithm of JSON Web Tokens with a public key. Its raw value is the `alg` of tokens.
public enum JSONWebTokenAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RSA (PKCS #1 v1.5) with SHA-256 (RFC 7518 §3.3). Keys have at least 2,048 bits.
    case rs256 = "RS256"
    /// ECDSA over P-256 with SHA-256 (RFC 7518 §3.4).
    case es256 = "ES256"
    /// Ed25519 (RFC 8037 §3.1). Tokens and keys with its later name `Ed25519` (RFC 9864) have it too.
    case edDSA = "EdDSA"

    /// - Parameter name: the `alg` of a token or of a key.
    package init?(name: String) { self.init(rawValue: name == "Ed25519" ? "EdDSA" : name) }
}

/// A public key of libcrypto, with the only algorithm that it verifies.
package final class TokenPublicKey: Sendable {
    package let algorithm: JSONWebTokenAlgorithm
    // `nonisolated(unsafe)`: the key is immutable after init, and each verification has a separate context.
    private nonisolated(unsafe) let pointer: OpaquePointer

    /// The minimum size of an RSA key (RFC 7518 §3.3).
    private static let minimumRSABits: Int32 = 2_048

    /// Reads a public key in PEM.
    ///
    /// - Throws: `TransportError` of code `.tls` when it is no public key, or does not suit the algorithm.
    convenience init(pem: String, _ algorithm: JSONWebTokenAlgorithm) throws(TransportError) {
        // The BIO refers to these bytes without a copy, so it is used within the closure.
        try self.init(Array(pem.utf8), in: "PEM", algorithm) { text in
            guard let bio = BIO_new_mem_buf(text.baseAddress, Int32(clamping: text.count)) else { return nil }
            defer { BIO_free(bio) }
            return PEM_read_bio_PUBKEY(bio, nil, nil, nil)
        }
    }

    /// Reads a SubjectPublicKeyInfo (RFC 5280 §4.1) in DER.
    ///
    /// - Throws: `TransportError` of code `.tls` when it is no public key, or does not suit the algorithm.
    package convenience init(der: [UInt8], _ algorithm: JSONWebTokenAlgorithm) throws(TransportError) {
        try self.init(der, in: "DER", algorithm) { bytes in
            var next = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
            return d2i_PUBKEY(nil, &next, bytes.count)
        }
    }

    private init(
        _ bytes: [UInt8], in format: String, _ algorithm: JSONWebTokenAlgorithm,
        read: (UnsafeRawBufferPointer) -> OpaquePointer?
    ) throws(TransportError) {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        defer { ERR_clear_error() }
        guard let pointer = bytes.withUnsafeBytes(read) else {
            throw TransportError(.tls, "the key for tokens is not a public key in \(format)")
        }
        if let problem = Self.problem(pointer, algorithm) {
            EVP_PKEY_free(pointer)
            throw TransportError(.tls, problem)
        }
        self.pointer = pointer
        self.algorithm = algorithm
    }

    deinit { EVP_PKEY_free(pointer) }

    /// Returns the reason why a key does not suit an algorithm.
    private static func problem(_ key: OpaquePointer, _ algorithm: JSONWebTokenAlgorithm) -> String? {
        let type = EVP_PKEY_get_base_id(key)
        let isSuitable =
            switch algorithm {
            case .rs256: type == EVP_PKEY_RSA
            case .es256: type == EVP_PKEY_EC && isP256(key)
            case .edDSA: type == EVP_PKEY_ED25519
            }
        guard isSuitable else { return "the key for tokens does not match its algorithm \(algorithm.rawValue)" }
        let bits = EVP_PKEY_get_bits(key)
        guard algorithm != .rs256 || bits >= minimumRSABits else {
            return "the RSA key for tokens has \(bits) bits; RS256 requires at least \(minimumRSABits)"
        }
        return nil
    }

    private static func isP256(_ key: OpaquePointer) -> Bool {
        let size = 32
        var name = [CChar](repeating: 0, count: size)
        var count = 0
        guard EVP_PKEY_get_group_name(key, &name, size, &count) == 1 else { return false }
        return name.prefix(count).map { UInt8(bitPattern: $0) }.elementsEqual("prime256v1".utf8)
    }

    /// Returns whether the signature of a token is that of these bytes.
    package func verifies(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        guard let encoded = algorithm == .es256 ? Self.encoded(signature) : signature else { return false }
        // The hash is a part of Ed25519.
        let hash: OpaquePointer? = algorithm == .edDSA ? nil : EVP_sha256()
        guard EVP_DigestVerifyInit(context, nil, hash, nil, pointer) == 1 else { return false }
        let isRight = EVP_DigestVerify(context, encoded, encoded.count, bytes, bytes.count) == 1
        ERR_clear_error()
        return isRight
    }

    /// Returns the signature in DER, as libcrypto requires. A token has the two 32-byte numbers side by side (RFC 7518 §3.4).
    private static func encoded(_ signature: [UInt8]) -> [UInt8]? {
        guard signature.count == 64 else { return nil }
        func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var digits = Array(bytes.drop { $0 == 0 })
            if digits.isEmpty || digits[0] & 0x80 != 0 { digits.insert(0, at: 0) }
            return [0x02, UInt8(digits.count)] + digits
        }
        let body = integer(signature[..<32]) + integer(signature[32...])
        return [0x30, UInt8(body.count)] + body
    }
}
