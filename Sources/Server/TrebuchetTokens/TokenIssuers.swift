internal import Glibc
internal import Platform
public import Trebuchet

/// Verifies JSON Web Tokens (RFC 7519) of issuers that rotate their keys: signature, `iss`, `aud`, `exp` and `nbf`.
///
///     let issuers = try TokenIssuers([TokenIssuer("https://login.example.org", audience: "todos")])
///     let access = AccessPolicy(authenticate: AccessPolicy.jsonWebTokens(issuers))
///
/// The keys of an issuer are fetched for its first token, on a thread that does no other work, and then cached:
///
/// - For the time that `Cache-Control` of the response permits, from one minute to 24 hours; one hour without it. In the last quarter
///   of this time the next token starts a fetch in the background.
/// - A token that names an unknown key causes a fetch if the last one is 30 seconds old. After a failed fetch for missing or expired keys
///   the next one follows after 10 seconds. Tokens that arrive during a fetch share it.
/// - While keys cannot be fetched, those in the cache are used until ``TokenIssuer/staleKeyTime`` after their expiry. The log has a line
///   at the beginning and at the end of such an outage.
///
/// A fetch takes at most 4 seconds. Redirects are not followed, and a key set has at most 256 KiB and 64 keys. Keys of another use than
/// `sig`, and RSA keys of fewer than 2,048 bits, are ignored.
public final class TokenIssuers: Sendable {
    /// An issuer with its keys.
    private struct Entry: Sendable {
        let settings: TokenIssuer
        let keys: IssuerKeys

        var prefix: String { settings.principalPrefix ?? "" }
    }

    /// The time limit of a fetch.
    private static let fetchTimeout = Duration.seconds(4)

    private let entries: [Entry]
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - issuers: the accepted issuers, with different ``TokenIssuer/issuer`` values.
    ///   - log: receives a line when the keys of an issuer cannot be fetched (`warning`) and when they can be again (`notice`). Default: a
    ///     `ConsoleLog`.
    /// - Throws: ``TokenIssuer/Problem`` for an empty list, for an issuer that occurs twice, and for two issuers without a
    ///   ``TokenIssuer/principalPrefix``.
    public convenience init(
        _ issuers: [TokenIssuer], log: (any ServerEventHandler)? = ConsoleLog()
    ) throws(TokenIssuer.Problem) {
        try self.init(
            issuers, log: log, now: { Int64(time(nil)) },
            uptime: { Int64(MonotonicClock.nowWithSleep / 1_000_000) })
    }

    /// - Parameters:
    ///   - now: seconds since 1970, for the times of tokens.
    ///   - uptime: monotonic milliseconds, for the times of keys.
    package init(
        _ issuers: [TokenIssuer], log: (any ServerEventHandler)?, now: @escaping @Sendable () -> Int64,
        uptime: @escaping @Sendable () -> Int64
    ) throws(TokenIssuer.Problem) {
        try Self.check(issuers)
        self.now = now
        entries = issuers.map { issuer in
            Entry(
                settings: issuer,
                keys: IssuerKeys(
                    from: issuer.source, of: "issuer '\(issuer.issuer)'", timeout: Self.fetchTimeout,
                    staleTime: issuer.staleKeyTime, uptime: uptime
                ) { level, line in log?.handle(.logMessage(level, LogLine.of(line))) })
        }
    }

    private static func check(_ issuers: [TokenIssuer]) throws(TokenIssuer.Problem) {
        guard !issuers.isEmpty else { throw TokenIssuer.Problem(member: "issuers", reason: "the list is empty") }
        for (index, issuer) in issuers.enumerated() {
            for other in issuers[..<index] {
                guard !issuer.issuer.isSameBytes(as: other.issuer) else {
                    throw TokenIssuer.Problem(member: "issuer", reason: "'\(issuer.issuer)' occurs twice")
                }
                let haveOwn = issuer.principalPrefix != nil && other.principalPrefix != nil
                guard haveOwn || !(issuer.principalPrefix ?? "").isSameBytes(as: other.principalPrefix ?? "") else {
                    throw TokenIssuer.Problem(
                        member: "principalPrefix",
                        reason:
                            "users of '\(other.issuer)' and '\(issuer.issuer)' could have the same ids; set it for one"
                    )
                }
            }
        }
    }

    /// Returns the principal of a token: `sub` with the prefix of its issuer is the id, `roles` the roles, other claims that are strings or
    /// numbers are `claims`, and so is `iss`.
    ///
    /// - Throws: `AccessDenied.unauthenticated` for an invalid token, and `TrebuchetError` of code `unavailable` if the keys of its issuer
    ///   are missing and cannot be fetched now.
    public func verify(_ token: String) async throws -> Principal {
        let token = try SignedToken(token)
        let claims = try TokenClaims(token.body)
        // Read before the signature is verified, so that most invalid tokens cause neither a fetch nor a computation.
        guard let entry = entry(of: claims.issuer) else {
            throw AccessDenied.invalidToken("its issuer is not accepted")
        }
        let settings = entry.settings
        guard let algorithm = JSONWebTokenAlgorithm(name: token.algorithm), settings.algorithms.contains(algorithm)
        else { throw AccessDenied.invalidToken("its algorithm is not accepted") }
        try claims.check(
            issuer: settings.issuer, audiences: settings.audiences, leeway: settings.leeway, now: now())
        do throws(IssuerKeys.Failure) {
            try await entry.keys.verify(token)
        } catch {
            switch error {
            case .unknownKey: throw AccessDenied.invalidToken("its key is unknown")
            case .wrongSignature: throw AccessDenied.invalidToken("its signature is wrong")
            case .unavailable(let pause):
                throw TrebuchetError(
                    .unavailable, "the keys of the token's issuer cannot be fetched; retry later", retryAfter: pause)
            }
        }
        var principal = try claims.principal()
        principal.id = entry.prefix + principal.id
        principal.claims["iss"] = settings.issuer
        guard !isReserved(principal.id, for: entry) else {
            throw AccessDenied.invalidToken("its subject has the prefix of another issuer")
        }
        return principal
    }

    private func entry(of issuer: String?) -> Entry? {
        guard let issuer else { return nil }
        return entries.first { $0.settings.issuer.isSameBytes(as: issuer) }
    }

    /// Returns whether an id belongs to the users of another issuer: one whose prefix is longer.
    private func isReserved(_ id: String, for entry: Entry) -> Bool {
        entries.contains { other in
            other.prefix.utf8.count > entry.prefix.utf8.count && id.utf8.starts(with: other.prefix.utf8)
        }
    }

    /// Fetches the keys of all issuers now, also those in the cache. Call it at the start of a server, so that a wrong URL has a log line
    /// before the first client connects, and after an issuer has withdrawn a key that is no longer secret.
    ///
    /// - Returns: whether the keys of all issuers have been fetched.
    @discardableResult
    public func refreshKeys() async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for entry in entries { group.addTask { await entry.keys.refresh() } }
            return await group.reduce(true) { $0 && $1 }
        }
    }
}

extension AccessPolicy {
    /// Authenticates clients that send a bearer token of one of the issuers. While the keys of its issuer are unavailable, a client is
    /// answered 503.
    public static func jsonWebTokens(_ issuers: TokenIssuers) -> Authenticate {
        { request in
            guard let token = request.bearerToken else {
                throw AccessDenied.unauthenticated("a bearer token is required")
            }
            return try await issuers.verify(token)
        }
    }
}
