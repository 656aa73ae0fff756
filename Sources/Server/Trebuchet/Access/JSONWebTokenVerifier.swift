internal import Glibc
internal import Transports

/// The signature algorithm and key of tokens (RFC 7518 §3). A verifier accepts its configured algorithm only.
public enum JSONWebTokenKey: Sendable {
    /// HMAC with SHA-256; the issuer has the same secret. At least 32 bytes.
    case hs256([UInt8])
    /// RSA with SHA-256; the public key in PEM, of at least 2,048 bits.
    case rs256(String)
    /// ECDSA over P-256 with SHA-256; the public key in PEM.
    case es256(String)
    /// Ed25519 (RFC 8037); the public key in PEM.
    case edDSA(String)
}

/// Verifies JSON Web Tokens (RFC 7519) with one key: signature, `exp`, `nbf`, and `aud` and `iss` if configured.
///
/// The keys of an issuer that rotates them are fetched by `TokenIssuers`, in the product `TrebuchetTokens`.
public struct JSONWebTokenVerifier: Sendable {
    /// The key in the form that verification uses.
    private enum Key: Sendable {
        case secret([UInt8])
        case `public`(TokenPublicKey)
    }

    private let algorithm: String
    private let key: Key
    private let audiences: Set<String>?
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
        func publicKey(_ pem: String, _ algorithm: JSONWebTokenAlgorithm) throws(TransportError) -> (String, Key) {
            let key = try TokenPublicKey(pem: pem, algorithm)
            return (algorithm.rawValue, .public(key))
        }
        switch key {
        case .hs256(let secret):
            guard secret.count >= 32 else {
                throw TransportError(.tls, "the secret for HS256 must have at least 32 bytes")
            }
            (algorithm, self.key) = ("HS256", .secret(secret))
        case .rs256(let pem): (algorithm, self.key) = try publicKey(pem, .rs256)
        case .es256(let pem): (algorithm, self.key) = try publicKey(pem, .es256)
        case .edDSA(let pem): (algorithm, self.key) = try publicKey(pem, .edDSA)
        }
        audiences = audience.map { [$0] }
        self.issuer = issuer
        self.leeway = leeway
        self.now = now
    }

    /// Returns the principal of a token: `sub` is the id, `roles` the roles, other claims that are strings or numbers are
    /// `claims`. Throws `AccessDenied`.
    public func verify(_ token: String) throws -> Principal {
        let claims = try TokenClaims(try signedBody(of: token))
        try claims.check(issuer: issuer, audiences: audiences, leeway: leeway, now: now())
        return try claims.principal()
    }

    /// Returns the claims of a token as they were signed. Verifies the signature only. Throws `AccessDenied`.
    package func signedBody(of text: String) throws(AccessDenied) -> [UInt8] {
        let token = try SignedToken(text)
        // The verifier chooses the algorithm, not the token: `none` and others never match.
        guard isNamed(by: token) else { throw .invalidToken("it is not signed with \(algorithm)") }
        guard isValid(token) else { throw .invalidToken("its signature is wrong") }
        return token.body
    }

    private func isNamed(by token: SignedToken) -> Bool {
        switch key {
        case .secret: token.algorithm == algorithm
        case .public(let key): JSONWebTokenAlgorithm(name: token.algorithm) == key.algorithm
        }
    }

    private func isValid(_ token: SignedToken) -> Bool {
        switch key {
        case .secret(let secret): token.isAuthenticated(by: secret)
        case .public(let key): token.isSigned(by: key)
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
