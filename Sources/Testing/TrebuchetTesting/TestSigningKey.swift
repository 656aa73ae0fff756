internal import COpenSSL
internal import Networking
package import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A key pair of an issuer of tokens, created by OpenSSL for a test.
package final class TestSigningKey: Sendable {
    package enum Kind: Sendable { case rsa(bits: Int32), ec, ed25519 }

    package let id: String
    package let algorithm: JSONWebTokenAlgorithm
    // `nonisolated(unsafe)`: the key is not changed after its creation, and each signature has a separate context.
    private nonisolated(unsafe) let key: OpaquePointer

    package init(_ id: String, _ kind: Kind = .ec) {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        self.id = id
        let context: OpaquePointer?
        switch kind {
        case .rsa(let bits):
            algorithm = .rs256
            context = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits)
        case .ec:
            algorithm = .es256
            context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        case .ed25519:
            algorithm = .edDSA
            context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nil)
            EVP_PKEY_keygen_init(context)
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        EVP_PKEY_keygen(context, &key)
        guard let key else { fatalError("OpenSSL cannot create a key") }
        self.key = key
    }

    deinit { EVP_PKEY_free(key) }

    /// The public key as an element of a key set (RFC 7517).
    package var json: String { json(#""use":"sig","alg":"\#(algorithm.rawValue)""#) }

    /// Returns the public key as an element of a key set.
    ///
    /// - Parameter members: further members; empty for none.
    package func json(_ members: String) -> String {
        let numbers =
            switch algorithm {
            case .rs256: #""kty":"RSA","n":"\#(number("n"))","e":"\#(number("e"))""#
            case .es256: #""kty":"EC","crv":"P-256","x":"\#(number("qx", 32))","y":"\#(number("qy", 32))""#
            case .edDSA: #""kty":"OKP","crv":"Ed25519","x":"\#(rawPublicKey)""#
            }
        let others = members.isEmpty ? "" : members + ","
        return #"{"kid":"\#(id)",\#(others)\#(numbers)}"#
    }

    /// The public key in PEM.
    package var pem: String {
        var der = [UInt8](repeating: 0, count: Int(i2d_PUBKEY(key, nil)))
        der.withUnsafeMutableBufferPointer { bytes in
            var next = bytes.baseAddress
            _ = i2d_PUBKEY(key, &next)
        }
        let text = Data(der).base64EncodedString(options: .lineLength64Characters)
        return "-----BEGIN PUBLIC KEY-----\n\(text)\n-----END PUBLIC KEY-----\n"
    }

    private func number(_ name: String, _ count: Int? = nil) -> String {
        var number: OpaquePointer?
        EVP_PKEY_get_bn_param(key, name, &number)
        defer { BN_free(number) }
        let count = count ?? Int((BN_num_bits(number) + 7) / 8)
        var bytes = [UInt8](repeating: 0, count: count)
        BN_bn2binpad(number, &bytes, Int32(count))
        return Base64URL.encode(bytes)
    }

    private var rawPublicKey: String {
        var count = 32
        var bytes = [UInt8](repeating: 0, count: count)
        EVP_PKEY_get_raw_public_key(key, &bytes, &count)
        return Base64URL.encode(bytes)
    }

    /// Returns a token.
    ///
    /// - Parameters:
    ///   - claims: a JSON object.
    ///   - head: its header, a JSON object. Default: one with the algorithm and the id of the key.
    package func token(_ claims: String, head: String? = nil) -> String {
        let head = head ?? #"{"alg":"\#(algorithm.rawValue)","kid":"\#(id)","typ":"JWT"}"#
        let signed = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return signed + "." + Base64URL.encode(sign(Array(signed.utf8)))
    }

    private func sign(_ bytes: [UInt8]) -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        // The hash is a part of Ed25519.
        let hash: OpaquePointer? = algorithm == .edDSA ? nil : EVP_sha256()
        EVP_DigestSignInit(context, nil, hash, nil, key)
        var count = 1_024
        var signature = [UInt8](repeating: 0, count: count)
        EVP_DigestSign(context, &signature, &count, bytes, bytes.count)
        signature.removeLast(signature.count - count)
        return algorithm == .es256 ? Self.raw(signature) : signature
    }

    /// The two numbers of 32 bytes in the DER form.
    private static func raw(_ der: [UInt8]) -> [UInt8] {
        var rest = der.dropFirst(2)
        var raw: [UInt8] = []
        for _ in 0..<2 {
            let count = Int(rest[rest.startIndex + 1])
            let number = rest.dropFirst(2).prefix(count).drop { $0 == 0 }
            raw += [UInt8](repeating: 0, count: 32 - number.count) + number
            rest = rest.dropFirst(2 + count)
        }
        return raw
    }
}
