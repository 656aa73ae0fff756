#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The parts of a signed JSON Web Token (RFC 7515 §3.1). The initializer verifies only the form of the token.
package struct SignedToken: Sendable {
    /// The maximum length of a token in bytes.
    private static let maximumLength = 8 << 10

    /// `alg` of the header.
    package let algorithm: String
    /// `kid` of the header; nil if it is missing or no string.
    package let keyID: String?
    /// The claims in JSON.
    package let body: [UInt8]
    private let signedBytes: [UInt8]
    private let signature: [UInt8]

    /// The used part of the header of a token (RFC 7515 §4.1).
    private struct Header: Decodable {
        let alg: String
        let kid: String?
        let crit: [String]?

        private enum Name: CodingKey { case alg, kid, crit }

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: Name.self)
            alg = try members.decode(String.self, forKey: .alg)
            kid = try? members.decode(String.self, forKey: .kid)
            crit = try members.decodeIfPresent([String].self, forKey: .crit)
        }
    }

    /// - Parameter text: a token of at most 8 KiB.
    package init(_ text: String) throws(AccessDenied) {
        guard text.utf8.count <= Self.maximumLength else { throw .invalidToken("it is too long") }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let head = Base64URL.decode(parts[0]), let body = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw .invalidToken("it is not a signed token") }
        guard let header = try? JSONDecoder().decode(Header.self, from: Data(head)) else {
            throw .invalidToken("its header is not JSON")
        }
        guard header.crit == nil else { throw .invalidToken("it has unsupported critical extensions") }
        (algorithm, keyID, self.body, self.signature) = (header.alg, header.kid, body, signature)
        signedBytes = Array(text.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
    }

    /// Returns whether the key has signed the token with its algorithm, which the header must name.
    package func isSigned(by key: TokenPublicKey) -> Bool {
        JSONWebTokenAlgorithm(name: algorithm) == key.algorithm && key.verifies(signature, of: signedBytes)
    }

    /// Returns whether the signature is the HMAC of the token with SHA-256 and a secret.
    func isAuthenticated(by secret: [UInt8]) -> Bool {
        algorithm == "HS256" && Digest.areEqual(Digest.hmacSHA256(signedBytes, key: secret), signature)
    }
}

extension AccessDenied {
    /// Returns the rejection of a token.
    package static func invalidToken(_ reason: String) -> AccessDenied {
        .unauthenticated("the token was not accepted: \(reason)")
    }
}
