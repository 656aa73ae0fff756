internal import Transports
internal import Trebuchet
internal import TrebuchetWire

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A key from a provider's key set (RFC 7517).
struct SigningKey: Sendable {
    private struct KeySet: Decodable {
        /// Keys that cannot be decoded are skipped: a set may contain unsupported types.
        struct Entry: Decodable {
            let key: WireKey?
            init(from decoder: any Decoder) throws { key = try? WireKey(from: decoder) }
        }

        let keys: [Entry]
    }

    private struct WireKey: Decodable {
        var kty: String
        var kid: String?
        var use: String?
        var alg: String?
        var crv: String?
        var n: String?
        var e: String?
        var x: String?
        var y: String?
    }

    /// The maximum number of keys of a set; more are ignored.
    private static let maximumKeys = 32

    let id: String?
    let algorithm: String
    let verifier: JSONWebTokenVerifier

    /// Returns the signing keys of a set; throws when there is none.
    static func all(in json: [UInt8]) throws(TransportError) -> [SigningKey] {
        guard let set = try? JSONDecoder().decode(KeySet.self, from: Data(json)) else {
            throw TransportError(.handshake, "the response is not a JSON Web Key Set (RFC 7517)")
        }
        let keys = set.keys.prefix(maximumKeys).compactMap { $0.key.flatMap { SigningKey($0) } }
        guard !keys.isEmpty else { throw TransportError(.handshake, "the response has no key for RS256 or ES256") }
        return keys
    }

    private init?(_ key: WireKey) {
        guard key.use == nil || key.use == "sig" else { return nil }
        let publicKey: JSONWebTokenKey
        switch key.kty {
        case "RSA":
            guard key.alg == nil || key.alg == "RS256", let pem = Self.rsaKey(key.n, key.e) else { return nil }
            (algorithm, publicKey) = ("RS256", .rs256(pem))
        case "EC":
            guard key.alg == nil || key.alg == "ES256", key.crv == "P-256", let pem = Self.ecKey(key.x, key.y) else {
                return nil
            }
            (algorithm, publicKey) = ("ES256", .es256(pem))
        default: return nil
        }
        // The claims are validated by `IDToken`.
        guard let verifier = try? JSONWebTokenVerifier(key: publicKey) else { return nil }
        self.verifier = verifier
        id = key.kid
    }

    // MARK: SubjectPublicKeyInfo (RFC 5280) in PEM, for libcrypto

    private static func rsaKey(_ modulus: String?, _ exponent: String?) -> String? {
        guard let modulus = number(modulus), let exponent = number(exponent),
            // Shorter keys are insecure, longer ones slow.
            (256...1024).contains(modulus.count), (1...8).contains(exponent.count),
            exponent.last.map({ $0 & 1 == 1 }) == true
        else { return nil }
        let key = DER.sequence([DER.integer(modulus), DER.integer(exponent)])
        let rsaEncryption: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00]
        return DER.pem(DER.sequence([DER.element(0x30, rsaEncryption), DER.element(0x03, [0] + key)]))
    }

    private static func ecKey(_ x: String?, _ y: String?) -> String? {
        guard let x = x.flatMap({ Base64URL.decode($0[...]) }), let y = y.flatMap({ Base64URL.decode($0[...]) }),
            x.count == 32, y.count == 32
        else { return nil }
        let ecPublicKey: [UInt8] = [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        let prime256: [UInt8] = [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        return DER.pem(
            DER.sequence([DER.element(0x30, ecPublicKey + prime256), DER.element(0x03, [0, 4] + x + y)]))
    }

    /// Decodes a number without leading zeros.
    private static func number(_ text: String?) -> [UInt8]? {
        text.flatMap { Base64URL.decode($0[...]) }.map { Array($0.drop { $0 == 0 }) }
    }
}

/// The part of DER (X.690) that a public key needs.
private enum DER {
    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = content.count
        while rest > 0 {
            length.insert(UInt8(rest & 0xFF), at: 0)
            rest >>= 8
        }
        return [tag] + (content.count < 0x80 ? [UInt8(content.count)] : [0x80 | UInt8(length.count)] + length) + content
    }

    static func sequence(_ elements: [[UInt8]]) -> [UInt8] { element(0x30, elements.flatMap { $0 }) }

    /// - Parameter number: without leading zeros.
    static func integer(_ number: [UInt8]) -> [UInt8] {
        element(0x02, number.first.map { $0 & 0x80 != 0 } ?? true ? [0] + number : number)
    }

    static func pem(_ key: [UInt8]) -> String {
        "-----BEGIN PUBLIC KEY-----\n\(Data(key).base64EncodedString(options: .lineLength64Characters))\n"
            + "-----END PUBLIC KEY-----\n"
    }
}
