internal import Platform
internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A user at a provider.
struct Identity: Equatable, Sendable {
    /// A hash of issuer and subject, as persisted.
    let name: String
    /// The address, if the provider reports it as verified.
    let address: MailAddress?

    init(issuer: String, subject: String, address: MailAddress?) {
        // An issuer contains no zero byte, so different pairs have different inputs.
        name = Base64URL.encode(Digest.sha256(Array(issuer.utf8) + [0] + Array(subject.utf8)))
        self.address = address
    }
}

/// The claims of an ID token (OpenID Connect Core 1.0 §2) and their validation (§3.1.3.7). Pure.
struct IDToken {
    private struct IDTokenClaims: Decodable {
        /// One string or several.
        struct Audience: Decodable {
            let all: [String]
            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                if let one = try? value.decode(String.self) {
                    all = [one]
                } else {
                    all = try value.decode([String].self)
                }
            }
        }

        /// Some providers write the flag as a string.
        struct Flag: Decodable {
            let isSet: Bool
            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                isSet = (try? value.decode(Bool.self)) ?? ((try? value.decode(String.self)) == "true")
            }
        }

        let iss: String
        let sub: String
        let aud: Audience
        let exp: Double
        let iat: Double?
        let nbf: Double?
        let azp: String?
        let nonce: String?
        let email: String?
        let email_verified: Flag?
    }

    private let claims: IDTokenClaims

    /// - Parameter body: the claims, with a verified signature.
    init(_ body: [UInt8]) throws(AuthError) {
        guard let claims = try? JSONDecoder().decode(IDTokenClaims.self, from: Data(body)) else {
            throw .invalidToken("its claims are not those of an ID token")
        }
        self.claims = claims
    }

    /// - Parameter now: seconds since 1970.
    func identity(at provider: OpenIDProvider, nonce: String?, now: Double) throws(AuthError) -> Identity {
        guard provider.isIssuer(claims.iss) else { throw .invalidToken("it has another issuer") }
        guard claims.aud.all.contains(where: provider.isAudience) else {
            throw .invalidToken("it is for another audience")
        }
        // With several audiences the authorized party must be ours (§3.1.3.7).
        if let party = claims.azp {
            guard provider.isAudience(party) else { throw .invalidToken("it was issued to another party") }
        } else if claims.aud.all.count > 1 {
            throw .invalidToken("it has several audiences and no authorized party")
        }
        let leeway = provider.leeway / .seconds(1)
        guard now < claims.exp + leeway else { throw .invalidToken("it has expired") }
        if let start = claims.nbf, now < start - leeway { throw .invalidToken("it is not valid yet") }
        if let start = claims.iat, now < start - leeway { throw .invalidToken("it was issued in the future") }
        try check(nonce)
        guard (1...255).contains(claims.sub.utf8.count) else { throw .invalidToken("its subject is invalid") }
        let isVerified = claims.email_verified?.isSet == true
        let address = isVerified ? claims.email.flatMap { try? MailAddress($0) } : nil
        return Identity(issuer: provider.issuer, subject: claims.sub, address: address)
    }

    /// Some apps put a hash of the nonce into the token, so that the token does not reveal it.
    private func check(_ nonce: String?) throws(AuthError) {
        switch (claims.nonce, nonce) {
        case (nil, nil): return
        case (.some, nil): throw .invalidToken("it has a nonce, and none was expected")
        case (nil, .some): throw .invalidToken("it has no nonce")
        case (let claim?, let nonce?):
            let hash = Digest.sha256(Array(nonce.utf8)).map { byte in
                (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }.joined()
            guard claim.isSameBytes(as: nonce) || claim.isSameBytes(as: hash) else {
                throw .invalidToken("it has another nonce")
            }
        }
    }
}
