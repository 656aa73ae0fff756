internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Creates and verifies access tokens: JSON Web Tokens with HS256 that contain the user and the session.
struct AccessTokens: Sendable {
    private struct AccessTokenClaims: Encodable {
        let iss = AccessTokens.issuer
        let sub: String
        let exp: Int64
        let roles: [String]
        let session: String
        let email: String?
    }

    private static let issuer = "trebuchet"
    private static let head = Base64URL.encode(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8))

    private let key: [UInt8]
    private let verifier: JSONWebTokenVerifier
    private let now: @Sendable () -> Int64
    private let lifetime: Int64

    /// - Parameter now: milliseconds since 1970.
    init(key: [UInt8], lifetime: Duration, now: @escaping @Sendable () -> Int64) throws {
        self.key = key
        self.now = now
        self.lifetime = lifetime.wholeMilliseconds / 1000
        // No leeway is needed, because one clock creates and verifies the tokens.
        verifier = try JSONWebTokenVerifier(
            key: .hs256(key), audience: nil, issuer: Self.issuer, leeway: .zero
        ) { now() / 1000 }
    }

    /// Returns the principal for connections of a user.
    static func principal(_ user: User, session: String) -> Principal {
        var claims = ["session": session]
        claims["email"] = user.email
        let roles = Set(user.roles ?? []).union([user.isGuest ? "guest" : "user"])
        return Principal(id: user.id, roles: roles, claims: claims)
    }

    func grant(_ user: User, _ token: RefreshToken) throws -> SessionGrant {
        let principal = Self.principal(user, session: token.session)
        let claims = AccessTokenClaims(
            sub: user.id, exp: now() / 1000 + lifetime, roles: principal.roles.sorted(), session: token.session,
            email: user.email)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let signed = Self.head + "." + Base64URL.encode(Array(try encoder.encode(claims)))
        let signature = Digest.hmacSHA256(Array(signed.utf8), key: key)
        return SessionGrant(
            user: user, refreshToken: token.text, accessToken: signed + "." + Base64URL.encode(signature),
            accessSeconds: Int(lifetime))
    }

    /// Returns the time at which a verified token was created, in milliseconds.
    func issued(_ token: String) throws -> Int64 {
        struct Expiry: Decodable { let exp: Int64 }
        let body = try verifier.signedBody(of: token)
        return (try JSONDecoder().decode(Expiry.self, from: Data(body)).exp - lifetime) * 1000
    }

    /// Returns the principal of a token; throws `AccessDenied`.
    func verify(_ token: String) throws -> Principal { try verifier.verify(token) }
}
