internal import Platform
internal import Relays
public import Trebuchet
public import TrebuchetCluster

/// The users of a server and their sessions; what an `AuthService` works with.
///
/// One object for each store: it is the only one that writes there. Changes come one after another, and are kept before
/// anybody is told of them. Of several nodes each has one at the engine that they share (``init(engine:mailer:providers:limits:report:onDelete:)``).
public actor Accounts {
    /// Deletes what an app keeps of a user; see ``init(store:mailer:providers:limits:report:onDelete:)``.
    public typealias DeletionHook = @Sendable (User) async throws -> Void

    let records: AccountRecords
    let mailer: any MagicCodeMailer
    let limits: AuthLimits
    let log: AuthLog
    let deletionHook: DeletionHook?
    /// Milliseconds since 1970: for what is kept, and told others.
    let now: @Sendable () -> Int64
    /// Milliseconds that pass evenly, whatever the time of day is set to: for rates, and for what lasts as long as the process.
    let uptime: @Sendable () -> Int64

    let tokens: AccessTokens
    let refreshKey: [UInt8]
    let codeKey: [UInt8]
    let providers: [ByteText: ProviderKeys]
    nonisolated let connections: SessionConnections
    /// What nodes have together; nil where there is one server.
    let shared: SharedAccounts?
    private let newsWatch: SessionNewsWatch?

    /// Held by the one who changes what is kept, where nobody else does.
    private let turn = AsyncBinarySemaphore()
    /// How many this object knows of; of those that nodes share the engine knows.
    var accountCount = AccountCount()
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
    ///   - report: told, in a line with its level, what the server's operator should know and clients should not: who was refused and which
    ///     sessions were ended (`notice`), why mail was not sent (`warning`) or the store failed (`error`). At most one line a second of each
    ///     kind, without codes and tokens. Default: nobody.
    ///   - onDelete: called before an account is deleted, when its user has proved to be that, to delete what the app keeps
    ///     of it. When it throws, nothing is deleted and the user is told to try again; so it may be called again for one
    ///     account. Default: nothing.
    public init(
        store: any StateStore = MemoryStore(), mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        report: @escaping @Sendable (ServerEvent.Level, String) -> Void = { _, _ in },
        onDelete: DeletionHook? = nil
    ) async throws(AuthError) {
        try await self.init(
            store: store, mailer: mailer, providers: providers, limits: limits, report: report, onDelete: onDelete,
            now: Self.timeOfDay, uptime: Self.uptime)
    }

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - uptime: milliseconds that pass evenly. Default: `now`.
    package init(
        store: any StateStore, mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        report: @escaping @Sendable (ServerEvent.Level, String) -> Void = { _, _ in },
        onDelete: DeletionHook? = nil, now: @escaping @Sendable () -> Int64,
        uptime: (@Sendable () -> Int64)? = nil
    ) async throws(AuthError) {
        try await self.init(
            at: StoreShelf(store: store), shared: nil, mailer: mailer, providers: providers, limits: limits,
            log: AuthLog(report), onDelete: onDelete, now: now, uptime: uptime ?? now
        ) { try await Task.sleep(for: $0) }
        accountCount = try await records.sweep(at: now())
    }

    /// Accounts that several nodes have together, at the engine that they share. Who signs in at one can renew, use and end the session at each.
    ///
    /// Accounts, sessions, codes under way and the secret that tokens are made with lie at the engine; rates count over all nodes. An
    /// access token is checked without asking the engine. Who signs in or out, renews a session or asks for a code while the engine is
    /// away gets `AuthError.unavailable`; who is signed in stays it.
    ///
    /// - Parameters:
    ///   - engine: nodes with the same one, and the same prefix there, have the same accounts. What a store has is not taken over.
    ///   - mailer: what sends magic codes.
    ///   - providers: whose ID tokens sign somebody in; the same at all nodes. Default: none.
    ///   - limits: the same at all nodes; ``AuthLimits`` says which count over all of them.
    ///   - report: as above.
    ///   - onDelete: as above; called at the node where somebody asks for it.
    /// - Throws: `unavailable` when the engine cannot be reached.
    public init(
        engine: any ClusterTables, mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        report: @escaping @Sendable (ServerEvent.Level, String) -> Void = { _, _ in },
        onDelete: DeletionHook? = nil
    ) async throws(AuthError) {
        try await self.init(
            engine: engine, mailer: mailer, providers: providers, limits: limits, report: report, onDelete: onDelete,
            now: Self.timeOfDay, uptime: Self.uptime
        ) { try await Task.sleep(for: $0) }
    }

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - uptime: milliseconds that pass evenly. Default: `now`.
    ///   - sleep: waits until news of sessions are read also without a message.
    package init(
        engine: any ClusterTables, mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        report: @escaping @Sendable (ServerEvent.Level, String) -> Void = { _, _ in },
        onDelete: DeletionHook? = nil, now: @escaping @Sendable () -> Int64,
        uptime: (@Sendable () -> Int64)? = nil,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async throws(AuthError) {
        let log = AuthLog(report)
        let shared = SharedAccounts(engine, atOnce: limits.waiting, report: { log.storeFailed($0) }, now: now)
        try await self.init(
            at: shared, shared: shared, mailer: mailer, providers: providers, limits: limits, log: log,
            onDelete: onDelete, now: now, uptime: uptime ?? now, sleep: sleep)
        // In nobody's way: how many there are is known without it.
        Task { [weak self] in await self?.sweepShared() }
    }

    private init(
        at shelf: any AccountShelf, shared: SharedAccounts?, mailer: any MagicCodeMailer, providers: [OpenIDProvider],
        limits: AuthLimits, log: AuthLog, onDelete: DeletionHook?,
        now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Int64,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async throws(AuthError) {
        self.log = log
        let records = AccountRecords(at: shelf) { log.storeFailed($0) }
        self.records = records
        self.shared = shared
        self.mailer = mailer
        self.limits = limits
        self.now = now
        self.uptime = uptime
        deletionHook = onDelete
        var keys: [ByteText: ProviderKeys] = [:]
        for provider in providers {
            keys[ByteText(provider.name)] = ProviderKeys(provider, now: now, uptime: uptime) { log.providerFailed($0) }
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
        nextSweep = uptime() + Self.sweepInterval
        codes = MagicCodes(limits)
        rates = AuthRates(limits)
        let connections = shared == nil ? SessionConnections() : SessionConnections(kept: 100_000)
        self.connections = connections
        guard let shared else {
            newsWatch = nil
            return
        }
        let reader = SessionNewsReader(shared, records, connections, log)
        do {
            newsWatch = try await SessionNewsWatch(reader, at: shared.tables, sleep: sleep)
        } catch {
            log.storeFailed("the engine of the accounts failed: \(error)")
            throw .unavailable
        }
        try await reader.read()
    }

    @Sendable private static func timeOfDay() -> Int64 { Int64(WallClock.now / 1_000_000) }
    @Sendable private static func uptime() -> Int64 { Int64(MonotonicClock.nowWithSleep / 1_000_000) }

    static let sweepInterval: Int64 = 60 * 60 * 1000
    /// How far the clocks of nodes may differ, in milliseconds.
    private static let clockDifference: Int64 = 60_000

    /// Lets anybody connect, and finds out who shows an access token: one that is wrong, has expired, or is of a session
    /// that has ended, is answered 401. Set `origins` too if browsers may come.
    public nonisolated var accessPolicy: AccessPolicy {
        var policy = AccessPolicy { [self] request in
            guard let token = request.bearerToken else { return nil }
            let principal = try tokens.verify(token)
            let session = principal.claims["session"]
            if let shared, let session {
                // Without asking the engine, which may be away.
                guard !shared.isLost else { throw AuthError.unavailable }
                let issued = connections.remembersAll ? .max : try tokens.issued(token) - Self.clockDifference
                switch connections.standing(of: session, since: issued) {
                case .ended: throw AccessDenied.unauthenticated("the session has ended")
                case .goesOn(let newer): return newer ?? principal
                case .unknown: break
                }
            }
            guard let session, let family = try await records.family(session),
                let account = try await records.account(family.account)
            else { throw AccessDenied.unauthenticated("the session has ended") }
            // Not the roles of the token, which may have been granted or taken since.
            return AccessTokens.principal(account.user(id: family.account), session: session)
        }
        policy.onConnect = { [connections] in connections.add($0) }
        if let shared {
            policy.accountsProblem = {
                shared.isLost ? "the engine has lost the accounts of the cluster: start the nodes again" : nil
            }
        }
        return policy
    }

    // MARK: What all operations use

    /// Changes what is kept, and nobody else meanwhile: one after another where this is the only one who writes, and else again from
    /// the beginning when somebody has changed what was read. So `body` does nothing but read before it writes.
    func inTurn<Result>(_ body: (AccountTurn) async throws(AuthError) -> Result) async throws(AuthError) -> Result {
        guard shared != nil else {
            guard turn.waitingCount < limits.waiting else { throw .limitReached("waiting") }
            return try await turn.withLock(isolation: self) { () throws(AuthError) in
                try await body(AccountTurn(records))
            }
        }
        for _ in 0..<Self.attempts {
            let turn = AccountTurn(records)
            do throws(AuthError) {
                return try await body(turn)
            } catch {
                guard turn.isStale else { throw error }
            }
        }
        log.storeFailed("an account was changed by others \(Self.attempts) times while it was to be changed")
        throw .unavailable
    }

    private static let attempts = 50

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
    func account(of connection: CallerConnection, in turn: AccountTurn? = nil) async throws(AuthError) -> Present? {
        let turn = turn ?? AccountTurn(records)
        guard let session = connection.session, let family = try await turn.family(session),
            let account = try await turn.account(family.account)
        else { return nil }
        return Present(id: family.account, account: account, session: session, family: family)
    }

    /// The same; throws when nobody is signed in.
    func present(on connection: CallerConnection, in turn: AccountTurn? = nil) async throws(AuthError) -> Present {
        guard let present = try await account(of: connection, in: turn) else { throw .notSignedIn }
        return present
    }

    /// Keeps what a turn has changed.
    func write(_ changes: AccountRecords.Changes, in turn: AccountTurn) async throws(AuthError) {
        try await turn.write(changes)
        accountCount += changes.count
        for change in changes.news.changed {
            for session in change.sessions {
                connections.update(
                    session, to: AccessTokens.principal(change.user, session: session), number: turn.number, at: now())
            }
        }
    }

    /// Signs the connection in.
    func grant(
        _ user: User, _ token: RefreshToken, on connection: CallerConnection, in turn: AccountTurn
    ) throws(AuthError) -> SessionGrant {
        guard let grant = try? tokens.grant(user, token) else { throw .unavailable }
        connections.signIn(
            connection, AccessTokens.principal(user, session: token.session), session: token.session, at: turn.number)
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
