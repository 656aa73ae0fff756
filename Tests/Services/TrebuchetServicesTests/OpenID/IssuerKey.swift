import COpenSSL
import Foundation

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A key pair of an issuer, created by OpenSSL for a test. `@unchecked Sendable`: the key is not changed after its creation.
final class IssuerKey: @unchecked Sendable {
    enum Kind { case rsa(bits: Int32), ec }

    let id: String
    let algorithm: String
    private let key: OpaquePointer

    init(_ id: String, _ kind: Kind = .ec) {
        self.id = id
        var key: OpaquePointer?
        switch kind {
        case .rsa(let bits):
            algorithm = "RS256"
            let context = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits)
            EVP_PKEY_keygen(context, &key)
            EVP_PKEY_CTX_free(context)
        case .ec:
            algorithm = "ES256"
            let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
            EVP_PKEY_keygen_init(context)
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
            EVP_PKEY_keygen(context, &key)
            EVP_PKEY_CTX_free(context)
        }
        self.key = key!
    }

    deinit { EVP_PKEY_free(key) }

    /// The key as an element of a key set.
    var json: String {
        let members =
            algorithm == "RS256"
            ? #""kty":"RSA","n":"\#(number("n"))","e":"\#(number("e"))""#
            : #""kty":"EC","crv":"P-256","x":"\#(number("qx", 32))","y":"\#(number("qy", 32))""#
        return #"{"kid":"\#(id)","use":"sig","alg":"\#(algorithm)",\#(members)}"#
    }

    private func number(_ name: String, _ count: Int? = nil) -> String {
        var number: OpaquePointer?
        EVP_PKEY_get_bn_param(key, name, &number)
        defer { BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: count ?? Int((BN_num_bits(number) + 7) / 8))
        BN_bn2binpad(number, &bytes, Int32(bytes.count))
        return Base64URL.encode(bytes)
    }

    /// A token with these claims.
    func token(_ claims: String, head: String? = nil) -> String {
        let head = head ?? #"{"alg":"\#(algorithm)","kid":"\#(id)","typ":"JWT"}"#
        let signed = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return signed + "." + Base64URL.encode(sign(Array(signed.utf8)))
    }

    private func sign(_ bytes: [UInt8]) -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key)
        var count = 1024
        var signature = [UInt8](repeating: 0, count: count)
        EVP_DigestSign(context, &signature, &count, bytes, bytes.count)
        signature.removeLast(signature.count - count)
        return algorithm == "RS256" ? signature : Self.raw(signature)
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
