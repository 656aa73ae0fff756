internal import Transports
internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A public key that an issuer has published.
struct PublishedKey: Sendable {
    /// `kid`; nil without one.
    let id: String?
    let key: TokenPublicKey
}

/// The published keys of an issuer: a JSON Web Key Set (RFC 7517).
enum KeySet {
    private struct Document: Decodable {
        /// Keys that cannot be decoded are skipped: a set may contain unsupported types.
        struct Entry: Decodable {
            let key: WebKey?
            init(from decoder: any Decoder) throws { key = try? WebKey(from: decoder) }
        }

        let keys: [Entry]
    }

    /// The maximum number of keys of a set, usable or not.
    private static let maximumKeys = 64

    /// Returns the keys of a set that verify tokens. Keys for another use, of another type and those that are too short are skipped.
    ///
    /// - Throws: `TransportError` for another document, for too many keys, and if no key remains.
    static func keys(in json: [UInt8]) throws(TransportError) -> [PublishedKey] {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(json)) else {
            throw TransportError(.handshake, "the response is not a JSON Web Key Set (RFC 7517)")
        }
        guard document.keys.count <= maximumKeys else {
            throw TransportError(
                .tooLarge, "the response has \(document.keys.count) keys; at most \(maximumKeys) are accepted")
        }
        let keys = document.keys.compactMap { $0.key?.published }
        guard !keys.isEmpty else {
            throw TransportError(.handshake, "the response has no key for RS256, ES256 or EdDSA (Ed25519)")
        }
        return keys
    }
}

/// A JSON Web Key (RFC 7517 §4).
private struct WebKey: Decodable {
    let kty: String
    let kid: String?
    let use: String?
    let key_ops: [String]?
    let alg: String?
    let crv: String?
    let n: String?
    let e: String?
    let x: String?
    let y: String?

    /// The key, if it verifies tokens.
    var published: PublishedKey? {
        guard use == nil || use == "sig", key_ops?.contains("verify") != false,
            let (algorithm, der) = subjectPublicKeyInfo,
            alg.map({ JSONWebTokenAlgorithm(name: $0) == algorithm }) ?? true,
            let key = try? TokenPublicKey(der: der, algorithm)
        else { return nil }
        return PublishedKey(id: kid, key: key)
    }

    /// The algorithm of the key's type, and the key as SubjectPublicKeyInfo (RFC 5280 §4.1) in DER, as libcrypto requires.
    private var subjectPublicKeyInfo: (JSONWebTokenAlgorithm, [UInt8])? {
        switch (kty, crv) {
        case ("RSA", _): rsaKey.map { (.rs256, $0) }
        case ("EC", "P-256"): ecKey.map { (.es256, $0) }
        case ("OKP", "Ed25519"): ed25519Key.map { (.edDSA, $0) }
        default: nil
        }
    }

    private var rsaKey: [UInt8]? {
        guard let modulus = Self.number(n), let exponent = Self.number(e),
            // Longer keys are slow. `TokenPublicKey` rejects those that are too short.
            modulus.count <= 1_024, (1...8).contains(exponent.count), exponent.last.map({ $0 & 1 == 1 }) == true
        else { return nil }
        let rsaEncryption: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00]
        return DER.publicKey(rsaEncryption, DER.sequence([DER.integer(modulus), DER.integer(exponent)]))
    }

    private var ecKey: [UInt8]? {
        guard let x = Self.bytes(x, count: 32), let y = Self.bytes(y, count: 32) else { return nil }
        let ecPublicKey: [UInt8] = [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        let prime256: [UInt8] = [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        return DER.publicKey(ecPublicKey + prime256, [4] + x + y)
    }

    private var ed25519Key: [UInt8]? {
        Self.bytes(x, count: 32).map { DER.publicKey([0x06, 0x03, 0x2B, 0x65, 0x70], $0) }
    }

    /// Decodes a number without leading zeros.
    private static func number(_ text: String?) -> [UInt8]? {
        text.flatMap { Base64URL.decode($0[...]) }.map { Array($0.drop { $0 == 0 }) }
    }

    private static func bytes(_ text: String?, count: Int) -> [UInt8]? {
        text.flatMap { Base64URL.decode($0[...]) }.flatMap { $0.count == count ? $0 : nil }
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

    /// - Parameters:
    ///   - algorithm: the elements of its identifier.
    ///   - key: the bytes of the key.
    static func publicKey(_ algorithm: [UInt8], _ key: [UInt8]) -> [UInt8] {
        sequence([element(0x30, algorithm), element(0x03, [0] + key)])
    }
}
