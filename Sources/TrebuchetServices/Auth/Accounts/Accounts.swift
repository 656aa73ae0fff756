internal import Platform
internal import Relays
public import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The users of a server and their sessions; what an `AuthService` works with.
///
/// One object for each store: it is the only one that writes there. Changes come one after another, and are kept before
/// anybody is told of them.
public actor Accounts {
    /// Deletes what an app keeps of a user; see ``init(store:mailer:providers:limits:report:onDelete:)``.
    public typealias DeletionHook = @Sendable (User) async throws -> Void

    let records: AccountRecords
    let mailer: any MagicCodeMailer
    let limits: AuthLimits
    let log: AuthLog
    let deletionHook: DeletionHook?
    /// Milliseconds since 1970.
    let now: @Sendable () -> Int64

    let tokens: AccessTokens
    let refreshKey: [UInt8]
    let codeKey: [UInt8]
    let providers: [ByteText: ProviderKeys]
    nonisolated let connections = SessionConnections()

    /// Held by the one who changes what is kept.
    private let turn = AsyncBinarySemaphore()
    var accountCount: AccountCount
    var nextSweep: Int64
    var codes: MagicCodes<CallerHost?>
    var rates: AuthRates<CallerHost?>
    var mailsInFlight = 0
    var mailsOfHosts: [CallerHost: Int] = [:]

    /// Accounts that last as long as the process.
    ///
    /// - Parameters:
    ///   - store: where accounts and sessions are kept. Default: in memory.
    ///   - mailer: what sends magic codes.
    ///   - providers: whose ID tokens sign somebody in; each has a name of its own. Default: none.
    ///   - report: told, in a line, what the server's operator should know and clients should not: who was refused, which
    ///     sessions were ended, why mail was not sent or the store failed. At most one line a second of each kind, without
    ///     codes and tokens. Default: nobody.
    ///   - onDelete: called before an account is deleted, when its user has proved to be that, to delete what the app keeps
    ///     of it. When it throws, nothing is deleted and the user is told to try again; so it may be called again for one
    ///     account. Default: nothing.
    public init(
        store: any StateStore = MemoryStore(), mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(), report: @escaping @Sendable (String) -> Void = { _ in },
        onDelete: DeletionHook? = nil
    ) async throws(AuthError) {
        try await self.init(
            store: store, mailer: mailer, providers: providers, limits: limits, report: report, onDelete: onDelete
        ) {
            Int64(Date().timeIntervalSince1970 * 1000)
        }
    }

    /// - Parameter now: milliseconds since 1970.
    package init(
        store: any StateStore, mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(), report: @escaping @Sendable (String) -> Void = { _ in },
        onDelete: DeletionHook? = nil, now: @escaping @Sendable () -> Int64
    ) async throws(AuthError) {
        let log = AuthLog(report)
        self.log = log
        records = AccountRecords(store) { log.storeFailed($0) }
        self.mailer = mailer
        self.limits = limits
        self.now = now
        deletionHook = onDelete
        var keys: [ByteText: ProviderKeys] = [:]
        for provider in providers {
            keys[ByteText(provider.name)] = ProviderKeys(provider, now: now) { log.providerFailed($0) }
        }
        precondition(keys.count == providers.count, "each OpenIDProvider has a name of its own")
        self.providers = keys
        let secret = try await records.secret()
        let key = { (use: String) in Digest.hmacSHA256(Array(use.utf8), key: secret) }
        refreshKey = key("refresh tokens")
        codeKey = key("magic codes")
        do {
            tokens = try AccessTokens(key: key("access tokens"), lifetime: limits.accessLifetime, now: now)
        } catch {
            throw .unavailable
        }
        accountCount = try await records.sweep(at: now())
        nextSweep = now() + Self.sweepInterval
        codes = MagicCodes(limits)
        rates = AuthRates(limits)
    }

    static let sweepInterval: Int64 = 60 * 60 * 1000

    /// Lets anybody connect, and finds out who shows an access token: one that is wrong, has expired, or is of a session
    /// that has ended, is answered 401. Set `origins` too if browsers may come.
    public nonisolated var accessPolicy: AccessPolicy {
        var policy = AccessPolicy { [self] request in
            guard let token = request.bearerToken else { return nil }
            guard let session = try tokens.verify(token).claims["session"],
                let family = try await records.family(session), let account = try await records.account(family.account)
            else { throw AccessDenied.unauthenticated("the session has ended") }
            // Not the roles of the token, which may have been granted or taken since.
            return AccessTokens.principal(account.user(id: family.account), session: session)
        }
        policy.onConnect = { [connections] in connections.add($0) }
        return policy
    }

    // MARK: What all operations use

    func inTurn<Result>(_ body: () async throws(AuthError) -> Result) async throws(AuthError) -> Result {
        guard turn.waitingCount < limits.waiting else { throw .limitReached("waiting") }
        return try await turn.withLock(isolation: self, body)
    }

    /// Tells the operator of what is refused.
    ///
    /// - Parameter what: what is to be done, as `to sign in`.
    func noting<Result>(
        _ what: String, _ connection: CallerConnection, _ body: () async throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        do {
            return try await body()
        } catch {
            log.refused(what, to: connection, error)
            throw error
        }
    }

    /// The account that a connection is signed in to, if its session goes on.
    func account(of connection: CallerConnection) async throws(AuthError) -> Present? {
        guard let session = connection.session, let family = try await records.family(session),
            let account = try await records.account(family.account)
        else { return nil }
        return Present(id: family.account, account: account, session: session, family: family)
    }

    /// The same; throws when nobody is signed in.
    func present(on connection: CallerConnection) async throws(AuthError) -> Present {
        guard let present = try await account(of: connection) else { throw .notSignedIn }
        return present
    }

    /// Signs the connection in.
    func grant(
        _ user: User, _ token: RefreshToken, on connection: CallerConnection
    ) throws(AuthError) -> SessionGrant {
        guard let grant = try? tokens.grant(user, token) else { throw .unavailable }
        connections.signIn(
            connection, AccessTokens.principal(user, session: token.session), session: token.session)
        return grant
    }
}

extension Accounts {
    /// Who is signed in over a connection, as it was when it was asked.
    struct Present {
        let id: String
        let account: Account
        let session: String
        var family: TokenFamily
    }
}

extension CallerConnection {
    /// The session that it is signed in by.
    var session: String? { principal?.claims["session"] }

    /// Who may not escape a rate by connecting again. Clients of this machine and in the process itself are one host.
    var asker: AuthRates<CallerHost?>.Asker { AuthRates.Asker(host: host, connection: number) }
}
