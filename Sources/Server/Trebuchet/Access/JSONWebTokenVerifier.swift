internal import COpenSSL
internal import Glibc
internal import Networking
internal import Synchronization

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The signature algorithm and key of tokens (RFC 7518 §3). A verifier accepts its configured algorithm only.
public enum JSONWebTokenKey: Sendable {
    /// HMAC with SHA-256; the issuer has the same secret. At least 32 bytes.
    case hs256([UInt8])
    /// RSA with SHA-256; the public key in PEM.
    case rs256(String)
    /// ECDSA over P-256 with SHA-256; the public key in PEM.
    case es256(String)
}

/// Verifies JSON Web Tokens (RFC 7519): signature, `exp`, `nbf`, and `aud` and `iss` if configured.
public struct JSONWebTokenVerifier: Sendable {
    /// The key in the form that verification uses.
    private enum Key: Sendable {
        case secret([UInt8])
        case `public`(PublicKey)
    }

    private static let maximumTokenLength = 8 << 10

    private let algorithm: String
    private let key: Key
    private let audience: String?
    private let issuer: String?
    private let leeway: Duration
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - audience: the value that `aud` must equal or contain; nil skips the check.
    ///   - issuer: the value that `iss` must equal; nil skips the check.
    ///   - leeway: the tolerated clock difference. Default 30 s.
    /// - Throws: `TransportError` of code `.tls` when the key cannot be read.
    public init(
        key: JSONWebTokenKey, audience: String? = nil, issuer: String? = nil, leeway: Duration = .seconds(30)
    ) throws {
        try self.init(key: key, audience: audience, issuer: issuer, leeway: leeway) { Int64(time(nil)) }
    }

    package init(
        key: JSONWebTokenKey, audience: String?, issuer: String?, leeway: Duration, now: @escaping @Sendable () -> Int64
    ) throws {
        switch key {
        case .hs256(let secret):
            guard secret.count >= 32 else {
                throw TransportError(.tls, "the secret for HS256 must have at least 32 bytes")
            }
            (algorithm, self.key) = ("HS256", .secret(secret))
        case .rs256(let pem): (algorithm, self.key) = ("RS256", .public(try PublicKey(pem: pem, type: EVP_PKEY_RSA)))
        case .es256(let pem): (algorithm, self.key) = ("ES256", .public(try PublicKey(pem: pem, type: EVP_PKEY_EC)))
        }
        self.audience = audience
        self.issuer = issuer
        self.leeway = leeway
        self.now = now
    }

    /// Returns the principal of a token: `sub` is the id, `roles` the roles, other claims that are strings or numbers are
    /// `claims`. Throws `AccessDenied`.
    public func verify(_ token: String) throws -> Principal {
        let body = try signedBody(of: token)
        guard let claims = try? JSONDecoder().decode(TokenClaims.self, from: Data(body)) else {
            throw denied("its claims are not JSON")
        }
        try check(claims)
        guard let id = claims.sub else { throw denied("it has no subject") }
        return Principal(id: id, roles: Set(claims.roles), claims: claims.others)
    }

    /// Returns the claims of a token as they were signed. Verifies the signature only. Throws `AccessDenied`.
    package func signedBody(of token: String) throws -> [UInt8] {
        guard token.utf8.count <= Self.maximumTokenLength else { throw denied("it is too long") }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let head = Base64URL.decode(parts[0]), let body = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw denied("it is not a signed token") }
        guard let header = try? JSONDecoder().decode(Header.self, from: Data(head)) else {
            throw denied("its header is not JSON")
        }
        // The verifier chooses the algorithm, not the token: `none` and others never match.
        guard header.alg == algorithm else { throw denied("it is not signed with \(algorithm)") }
        guard header.crit == nil else { throw denied("it has unsupported critical extensions") }
        let signed = Array(token.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
        guard isValid(signature, of: signed) else { throw denied("its signature is wrong") }
        return body
    }

    private func isValid(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
        switch key {
        case .secret(let secret): Digest.areEqual(Digest.hmacSHA256(bytes, key: secret), signature)
        case .public(let key): key.verifies(signature, of: bytes)
        }
    }

    private func check(_ claims: TokenClaims) throws {
        let now = Double(now())
        let leeway = leeway / .seconds(1)
        guard let expiry = claims.exp else { throw denied("it has no expiry") }
        guard now < expiry + leeway else { throw denied("it has expired") }
        if let start = claims.nbf, now < start - leeway { throw denied("it is not valid yet") }
        if let issuer, !Self.isSame(claims.iss, issuer) { throw denied("its issuer is wrong") }
        if let audience, !claims.aud.contains(where: { Self.isSame($0, audience) }) {
            throw denied("its audience is wrong")
        }
    }

    /// Compares bytes, since Swift treats canonically equivalent strings as equal.
    private static func isSame(_ claim: String?, _ text: String) -> Bool {
        claim.map { $0.utf8.elementsEqual(text.utf8) } ?? false
    }

    private func denied(_ reason: String) -> AccessDenied { .unauthenticated("the token was not accepted: \(reason)") }

    /// The header of a token (RFC 7515 §4.1).
    private struct Header: Decodable {
        var alg: String
        var crit: [String]?
    }

    /// The claims of a token; `others` has strings and numbers of unregistered claims.
    private struct TokenClaims: Decodable {
        var sub: String?
        var iss: String?
        var aud: [String] = []
        var exp: Double?
        var nbf: Double?
        var roles: [String] = []
        var others: [String: String] = [:]

        /// A coding key of any name.
        struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: Name.self)
            for name in members.allKeys {
                switch name.stringValue {
                case "sub": sub = try members.decode(String.self, forKey: name)
                case "iss": iss = try members.decode(String.self, forKey: name)
                case "exp": exp = try members.decode(Double.self, forKey: name)
                case "nbf": nbf = try members.decode(Double.self, forKey: name)
                case "aud":
                    if let one = try? members.decode(String.self, forKey: name) {
                        aud = [one]
                    } else {
                        aud = try members.decode([String].self, forKey: name)
                    }
                case "roles": roles = try members.decode([String].self, forKey: name)
                default:
                    if let text = try? members.decode(String.self, forKey: name) {
                        others[name.stringValue] = text
                    } else if let number = try? members.decode(Double.self, forKey: name) {
                        others[name.stringValue] =
                            number == number.rounded() ? String(Int64(exactly: number) ?? 0) : "\(number)"
                    }
                }
            }
        }
    }
}

extension AccessPolicy {
    /// Authenticates clients that send a bearer token which `verifier` accepts.
    public static func jsonWebTokens(_ verifier: JSONWebTokenVerifier) -> Authenticate {
        { request in
            guard let token = request.bearerToken else {
                throw AccessDenied.unauthenticated("a bearer token is required")
            }
            return try verifier.verify(token)
        }
    }
}

/// A public key of libcrypto.
private final class PublicKey: Sendable {
    // `nonisolated(unsafe)`: the key is immutable after init, and each verification has a separate context.
    private nonisolated(unsafe) let pointer: OpaquePointer
    private let isEC: Bool

    init(pem: String, type: Int32) throws {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        // The BIO refers to these bytes without a copy, so it is used within the closure.
        let read = Array(pem.utf8).withUnsafeBytes { text -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(text.baseAddress, Int32(text.count)) else { return nil }
            defer { BIO_free(bio) }
            return PEM_read_bio_PUBKEY(bio, nil, nil, nil)
        }
        guard let pointer = read else {
            ERR_clear_error()
            throw TransportError(.tls, "the key for tokens is not a public key in PEM")
        }
        guard EVP_PKEY_get_base_id(pointer) == type else {
            EVP_PKEY_free(pointer)
            throw TransportError(.tls, "the key for tokens does not match its algorithm")
        }
        self.pointer = pointer
        isEC = type == EVP_PKEY_EC
    }

    deinit { EVP_PKEY_free(pointer) }

    func verifies(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        guard let encoded = isEC ? Self.encoded(signature) : signature else { return false }
        guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, pointer) == 1 else { return false }
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

/// Base64 with the URL-safe alphabet and without padding (RFC 7515 §2).
package enum Base64URL {
    package static func decode(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for letter in text.utf8 {
            let digit: UInt8
            switch letter {
            case 0x41...0x5A: digit = letter - 0x41
            case 0x61...0x7A: digit = letter - 0x61 + 26
            case 0x30...0x39: digit = letter - 0x30 + 52
            case 0x2D: digit = 62
            case 0x5F: digit = 63
            default: return nil
            }
            bits = bits << 6 | UInt32(digit)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        // A single remaining letter encodes no byte, and unused bits must be zero.
        guard count < 6, bits & ((1 << UInt32(count)) - 1) == 0 else { return nil }
        return bytes
    }

    package static func encode(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(letters[Int(bits >> UInt32(count) & 63)])
            }
        }
        if count > 0 { text.append(letters[Int(bits << UInt32(6 - count) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }
}
