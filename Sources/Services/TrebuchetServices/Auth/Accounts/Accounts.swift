@_exported public import TrebuchetServicesClient
@_exported public import TrebuchetServicesModel
internal import Platform
public import Trebuchet
public import TrebuchetCluster
#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The users of a server and their sessions, used by an `AuthService`.
///
/// There is one object for each store, and it is the only writer there. Changes of the same account are serialized, others share
/// commits; each is persisted before any client learns of it. In a cluster each node has one object on a common coordination store
/// (``init(engine:mailer:providers:limits:report:onDelete:)``).
public actor Accounts {
    /// Deletes the app's data of a user; see ``init(store:mailer:providers:limits:report:onDelete:)``.
    public typealias DeletionHook = @Sendable (User) async throws -> Void

    let records: AccountRecords
    let mailer: any MagicCodeMailer
    let limits: AuthLimits
    let log: AuthLog
    let deletionHook: DeletionHook?
    /// Milliseconds since 1970, for persisted and transmitted times.
    let now: @Sendable () -> Int64
    /// Monotonic milliseconds, for rates and for state that lasts as long as the process.
    let uptime: @Sendable () -> Int64

    let tokens: AccessTokens
    let refreshKey: [UInt8]
    let codeKey: [UInt8]
    let providers: [ByteText: ProviderKeys]
    nonisolated let connections: SessionConnections
    /// The state that the nodes share; nil at a single server.
    let shared: SharedAccounts?
    private let changeSubscription: SessionChangeSubscription?

    /// Limits the operations in progress where this object is the only writer.
    private var waitingCalls: FairCallQueue<CallerHost?>
    private var callWaiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    private var callsInProgress = 0
    /// Operations that are repeated wait here.
    private var retryWaiters: ArraySlice<CheckedContinuation<Void, Never>> = []
    private var isRetryTaken = false
    /// The connections with an operation in progress, and their next operations.
    private var connectionWaiters: [CallerConnection: [CheckedContinuation<Void, Never>]] = [:]
    /// The number of accounts that this object knows; shared accounts are counted in the coordination store.
    var accountCount = AccountCount()
    var nextExpiryRun: Int64
    var codes: MagicCodes<CallerHost?>
    var rates: AuthRates<CallerHost?>
    var mails: MailQueue<CallerHost?>
    /// The mails that wait for their turn, by number.
    var mailWaiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]

    /// Creates accounts for a single server.
    ///
    /// - Parameters:
    ///   - store: the store for accounts and sessions. Default: in memory.
    ///   - mailer: sends magic codes.
    ///   - providers: the issuers of accepted ID tokens, with unique names. Default: none.
    ///   - log: receives lines for the operator: refused callers and ended sessions (`notice`), mail that was not sent
    ///     (`warning`), store failures (`error`). At most one line a second for each kind, without codes and tokens. Default:
    ///     none.
    ///   - onDelete: deletes the app's data of a user, before the account is deleted and after the user has authenticated. When
    ///     it throws, nothing is deleted and the client may try again, so it may be called again for an account. Default:
    ///     nothing.
    public init(
        store: any StateStore = MemoryStore(), mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        log: (any ServerEventHandler)? = nil,
        onDelete: DeletionHook? = nil
    ) async throws(AuthError) {
        try await self.init(
            store: store, mailer: mailer, providers: providers, limits: limits, log: log, onDelete: onDelete,
            now: Self.timeOfDay, uptime: Self.uptime)
    }

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - uptime: monotonic milliseconds. Default: `now`.
    package init(
        store: any StateStore, mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        log: (any ServerEventHandler)? = nil,
        onDelete: DeletionHook? = nil, now: @escaping @Sendable () -> Int64,
        uptime: (@Sendable () -> Int64)? = nil
    ) async throws(AuthError) {
        try await self.init(
            at: StoreAccountStorage(store: store), shared: nil, mailer: mailer, providers: providers, limits: limits,
            log: AuthLog(log), onDelete: onDelete, now: now, uptime: uptime ?? now
        ) { try await Task.sleep(for: $0) }
        accountCount = try await records.deleteExpired(at: now())
    }

    /// Creates accounts that several nodes share in a coordination store. A client that signs in at one node can renew, use and
    /// end its session at each.
    ///
    /// Accounts, sessions, pending codes and the token secret are in the coordination store; rates count over all nodes. Access
    /// tokens are verified without it. While the store is unavailable, signing in or out, renewal and requests for codes fail
    /// with `AuthError.unavailable`; signed-in connections stay signed in.
    ///
    /// - Parameters:
    ///   - engine: the coordination store; nodes with the same one, and the same prefix in it, have the same accounts. Accounts
    ///     of a local store are not copied.
    ///   - mailer: sends magic codes.
    ///   - providers: the issuers of accepted ID tokens; the same at all nodes. Default: none.
    ///   - limits: the same at all nodes; ``AuthLimits`` says which count over all of them.
    ///   - log: as above.
    ///   - onDelete: as above; called at the node that receives the request.
    /// - Throws: `unavailable` when the coordination store cannot be reached.
    public init(
        engine: any ClusterTables, mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        log: (any ServerEventHandler)? = nil,
        onDelete: DeletionHook? = nil
    ) async throws(AuthError) {
        try await self.init(
            engine: engine, mailer: mailer, providers: providers, limits: limits, log: log, onDelete: onDelete,
            now: Self.timeOfDay, uptime: Self.uptime
        ) { try await Task.sleep(for: $0) }
    }

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - uptime: monotonic milliseconds. Default: `now`.
    ///   - sleep: waits for the next poll of session notices, which also happens without a message.
    package init(
        engine: any ClusterTables, mailer: any MagicCodeMailer, providers: [OpenIDProvider] = [],
        limits: AuthLimits = AuthLimits(),
        log: (any ServerEventHandler)? = nil,
        onDelete: DeletionHook? = nil, now: @escaping @Sendable () -> Int64,
        uptime: (@Sendable () -> Int64)? = nil,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async throws(AuthError) {
        let log = AuthLog(log)
        let shared = SharedAccounts(engine, atOnce: limits.queuedRequests, report: { log.storeFailed($0) }, now: now)
        try await self.init(
            at: shared, shared: shared, mailer: mailer, providers: providers, limits: limits, log: log,
            onDelete: onDelete, now: now, uptime: uptime ?? now, sleep: sleep)
        // In the background: the number of accounts is known without the sweep.
        Task { [weak self] in await self?.deleteExpiredIfDue() }
    }

    private init(
        at storage: any AccountStorage, shared: SharedAccounts?, mailer: any MagicCodeMailer,
        providers: [OpenIDProvider],
        limits: AuthLimits, log: AuthLog, onDelete: DeletionHook?,
        now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Int64,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) async throws(AuthError) {
        self.log = log
        let records = AccountRecords(at: storage) { log.storeFailed($0) }
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
        precondition(keys.count == providers.count, "each OpenIDProvider must have a unique name")
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
        nextExpiryRun = uptime() + Self.expiryInterval
        codes = MagicCodes(limits)
        rates = AuthRates(limits)
        mails = MailQueue(limits)
        waitingCalls = FairCallQueue(limit: limits.queuedRequests)
        let connections = shared == nil ? SessionConnections() : SessionConnections(limit: 100_000)
        self.connections = connections
        guard let shared else {
            changeSubscription = nil
            return
        }
        let reader = SessionChangeReader(shared, records, connections, log)
        do {
            changeSubscription = try await SessionChangeSubscription(reader, at: shared.tables, sleep: sleep)
        } catch {
            log.storeFailed("the coordination store of the accounts failed: \(error)")
            throw .unavailable
        }
        try await reader.read()
    }

    @Sendable private static func timeOfDay() -> Int64 { Int64(WallClock.now / 1_000_000) }
    @Sendable private static func uptime() -> Int64 { Int64(MonotonicClock.nowWithSleep / 1_000_000) }

    static let expiryInterval: Int64 = 60 * 60 * 1000
    /// The maximum difference between the clocks of two nodes, in milliseconds.
    private static let clockDifference: Int64 = 60_000

    /// The access policy for these accounts. It admits anonymous callers and identifies those with an access token. A token
    /// that is invalid or expired, or whose session has ended, is rejected with 401. Set `origins` too if browsers connect.
    public nonisolated var accessPolicy: AccessPolicy {
        var policy = AccessPolicy { [self] request in
            guard let token = request.bearerToken else { return nil }
            let principal = try tokens.verify(token)
            let session = principal.claims["session"]
            if let shared, let session {
                // Does not ask the coordination store, which may be unavailable.
                guard !shared.isLost else { throw AuthError.unavailable }
                let issued = connections.hasCompleteHistory ? .max : try tokens.issued(token) - Self.clockDifference
                switch connections.validity(of: session, since: issued) {
                case .ended: throw AccessDenied.unauthenticated("the session has ended")
                case .valid(let newer): return newer ?? principal
                case .unknown: break
                }
            }
            guard let session, let family = try await records.family(session),
                let account = try await records.account(family.account)
            else { throw AccessDenied.unauthenticated("the session has ended") }
            // Not the roles in the token, which may have changed since.
            return AccessTokens.principal(account.user(id: family.account), session: session)
        }
        policy.onConnect = { [connections] in connections.addConnection($0) }
        if let shared {
            policy.accountsProblem = {
                shared.isLost ? "the coordination store has lost the accounts of the cluster; restart the nodes" : nil
            }
        }
        return policy
    }

    // MARK: Common parts of operations

    /// Runs one account operation. Operations run concurrently, except those of one connection, and share the commits of the
    /// store; `body` is repeated when another operation has changed a record that it read. So `body` must have no effects before
    /// its write. Where this is the only writer, few operations run at once, in turns of networks and hosts.
    ///
    /// - Parameter connection: the caller; nil for an administrator.
    func inTurn<Result>(
        of connection: CallerConnection?, _ body: (AccountTransaction) async throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        if let connection { await beginTurn(of: connection) }
        defer { if let connection { endTurn(of: connection) } }
        if shared == nil { try await beginTurn(of: connection?.host) }
        defer { if shared == nil { endTurn() } }
        var isRetrying = false
        defer { if isRetrying { endRetry() } }
        for attempt in 0..<Self.attempts {
            if attempt == 1 {
                await beginRetry()
                isRetrying = true
            }
            let transaction = AccountTransaction(records)
            do throws(AuthError) {
                return try await body(transaction)
            } catch {
                guard transaction.isStale else { throw error }
            }
        }
        log.storeFailed("account transaction failed after \(Self.attempts) conflicts with other changes")
        throw .unavailable
    }

    /// Operations that conflict with others are repeated one at a time. Otherwise all but one would fail again and again.
    private func beginRetry() async {
        guard isRetryTaken else { return isRetryTaken = true }
        await withCheckedContinuation { retryWaiters.append($0) }
    }

    private func endRetry() {
        guard let next = retryWaiters.popFirst() else { return isRetryTaken = false }
        next.resume()
    }

    /// Returns when no other operation of the connection is in progress.
    private func beginTurn(of connection: CallerConnection) async {
        guard connectionWaiters[connection] != nil else { return connectionWaiters[connection] = [] }
        await withCheckedContinuation { connectionWaiters[connection]?.append($0) }
    }

    private func endTurn(of connection: CallerConnection) {
        guard connectionWaiters[connection]?.isEmpty == false else {
            connectionWaiters[connection] = nil
            return
        }
        connectionWaiters[connection]?.removeFirst().resume()
    }

    /// Returns when it is the turn of a call; throws when too many wait. Cancellation does not end the wait.
    private func beginTurn(of host: CallerHost?) async throws(AuthError) {
        guard callsInProgress == Self.maximumCallsInProgress else { return callsInProgress += 1 }
        let (number, refused) = waitingCalls.add(from: host)
        if let refused { callWaiters.removeValue(forKey: refused)?.resume(returning: false) }
        guard refused != number, await withCheckedContinuation({ callWaiters[number] = $0 }) else {
            throw .limitReached("queuedRequests")
        }
    }

    /// Gives the turn to the next waiting call.
    private func endTurn() {
        guard let next = waitingCalls.next() else { return callsInProgress -= 1 }
        callWaiters.removeValue(forKey: next)?.resume(returning: true)
    }

    /// The number of calls that wait for their turn.
    var waitingCallCount: Int { waitingCalls.count }

    private static let attempts = 50
    /// Enough to share the commits of a store, and few enough that the turns of networks count.
    static let maximumCallsInProgress = 32

    /// Runs `body` and logs refusals.
    ///
    /// - Parameter what: the operation, as `to sign in`.
    func loggingRefusals<Result>(
        _ what: String, _ connection: CallerConnection, _ body: () async throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        do {
            return try await body()
        } catch {
            log.refused(what, to: connection, error)
            throw error
        }
    }

    /// Returns the account that a connection is signed in to, or nil when its session has ended.
    func account(of connection: CallerConnection, in transaction: AccountTransaction? = nil) async throws(AuthError)
        -> SignedInCaller?
    {
        let transaction = transaction ?? AccountTransaction(records)
        guard let session = connection.session, let family = try await transaction.family(session),
            let account = try await transaction.account(family.account)
        else { return nil }
        return SignedInCaller(id: family.account, account: account, session: session, family: family)
    }

    /// Returns the account of a signed-in connection; throws otherwise.
    func present(on connection: CallerConnection, in transaction: AccountTransaction? = nil) async throws(AuthError)
        -> SignedInCaller
    {
        guard let present = try await account(of: connection, in: transaction) else { throw .notSignedIn }
        return present
    }

    /// Persists the changes of a transaction.
    func write(_ changes: AccountRecords.Changes, in transaction: AccountTransaction) async throws(AuthError) {
        // Counted before the write, so that concurrent operations do not exceed a limit together.
        let isCounted = shared == nil
        if isCounted {
            if let limit = limit(exceededBy: changes.count) { throw .limitReached(limit) }
            accountCount += changes.count
        }
        do {
            try await transaction.write(changes)
        } catch {
            if isCounted { accountCount -= changes.count }
            throw error
        }
        if !isCounted { accountCount += changes.count }
        for change in changes.notice.changed {
            for session in change.sessions {
                connections.update(
                    session, to: AccessTokens.principal(change.user, session: session), number: transaction.number,
                    at: now())
            }
        }
    }

    /// Signs the connection in.
    func grant(
        _ user: User, _ token: RefreshToken, on connection: CallerConnection, in transaction: AccountTransaction
    ) throws(AuthError) -> SessionGrant {
        guard let grant = try? tokens.grant(user, token) else { throw .unavailable }
        connections.signIn(
            connection, AccessTokens.principal(user, session: token.session), session: token.session,
            at: transaction.number)
        return grant
    }
}

extension Accounts {
    /// The account of a signed-in connection, as it was when it was read.
    struct SignedInCaller {
        let id: String
        let account: Account
        let session: String
        var family: RefreshTokenFamily
    }
}

extension CallerConnection {
    /// The session by which the connection is signed in.
    var session: String? { principal?.claims["session"] }

    /// The party to which rates apply across reconnects. All clients on the local machine and in the process are one host.
    var requester: AuthRates<CallerHost?>.Requester { AuthRates.Requester(host: host, connection: number) }
}

/// Rates and pending codes: in memory at one server, in the coordination store for several nodes.
extension Accounts {
    // MARK: Rates

    /// Takes the rates of an operation.
    func consumeRate(_ operation: AuthRates<CallerHost?>.Operation, _ connection: CallerConnection)
        async throws(AuthError)
    {
        let (requester, host) = (connection.requester, connection.host)
        guard let shared else { return try rates.consume(operation, requester, at: uptime()) }
        // This node also counts what the shared rates have admitted here, so that a flood asks the coordination store little.
        let local: AuthRates<CallerHost?>.Operation = if case .code = operation { .code(for: nil) } else { operation }
        try rates.check(local, requester, at: uptime())
        let attempts = consumptions("attempts", host, limits.attemptsPerHost)
        let taken: [RateConsumption] =
            switch operation {
            case .code(let address?):
                attempts + consumptions("places", host, of: address, limits.codesPerAddressAndHost)
                    + [consumption("addresses", hidden(address), limits.codesPerAddress)]
            case .code(nil): attempts
            case .attempt: attempts
            case .newGuest: attempts + consumptions("guests", host, limits.guestsPerHost)
            case .renewal: consumptions("renewals", host, limits.renewalsPerHost)
            }
        try await shared.consumeRates(taken)
        rates.record(local, requester, at: uptime())
    }

    /// Restores the rate of an address after a correct code: its user reads the mail and may request codes as at first.
    func usedCode(for address: String, _ connection: CallerConnection) async {
        guard let shared else { return rates.usedCode(for: address, connection.requester) }
        for rate in consumptions("places", connection.host, of: address, limits.codesPerAddressAndHost) {
            await shared.restore(rate.key)
        }
    }

    /// Returns the consumption of a rate by a host, and by its network.
    private func consumptions(
        _ kind: String, _ host: CallerHost?, of address: String? = nil, _ limit: RateLimit
    ) -> [RateConsumption] {
        let subject = address.map { " " + hidden($0) } ?? ""
        let own = consumption(kind, Self.name(host) + subject, limit)
        guard let host, host.network != host else { return [own] }
        return [own, consumption(kind + "OfNetworks", Self.name(host.network) + subject, limit.ofNetwork)]
    }

    private func consumption(_ kind: String, _ name: String, _ limit: RateLimit) -> RateConsumption {
        RateConsumption(
            RateKey(kind, name), interval: .seconds(1 / limit.callsPerSecond), burst: limit.burst,
            maximumEntries: limits.rateEntries)
    }

    /// The name of a host, the same at all nodes.
    private static func name(_ host: CallerHost?) -> String { host.map { String($0.number, radix: 16) } ?? "local" }

    /// Hides the address, which may belong to no account.
    private func hidden(_ address: String) -> String {
        Base64URL.encode(Digest.hmacSHA256(Array("address \(address)".utf8), key: codeKey))
    }

    // MARK: Codes

    func addCode(_ digest: [UInt8], for name: String, from host: CallerHost?) async throws(AuthError) {
        // Each node also counts the codes that it has sent.
        let evicted = try codes.addCode(digest, for: name, from: host, at: uptime())
        guard let shared else { return }
        let now = now()
        let until = now + limits.codeLifetime.wholeMilliseconds
        let tries = limits.codeAttempts
        try await shared.change(codesOf: hidden(name), lifetime: limits.codeLifetime) { codes in
            codes.removeExpired(at: now)
            codes.addCode(digest, from: Self.name(host), until: until, tries: tries)
        }
        if let evicted { try await removeShared(evicted.digest, for: evicted.address, from: evicted.host) }
    }

    /// Returns the wrong tries that a host has left for a code; throws `noCode` without a code.
    func triesLeft(for name: String, from host: CallerHost?) async throws(AuthError) -> Int {
        guard let shared else { return try codes.triesLeft(for: name, from: host, at: uptime()) }
        let now = now()
        return try await shared.change(codesOf: hidden(name), lifetime: limits.codeLifetime) {
            codes throws(AuthError) in
            try codes.triesLeft(from: Self.name(host), at: now)
        }
    }

    /// Removes a code whose mail was not sent.
    func remove(_ digest: [UInt8], for name: String, from host: CallerHost?) async {
        codes.remove(digest, for: name, from: host)
        // Errors are ignored: a code that no client has received cannot be used.
        try? await removeShared(digest, for: name, from: host)
    }

    private func removeShared(_ digest: [UInt8], for name: String, from host: CallerHost?) async throws(AuthError) {
        try await shared?.change(codesOf: hidden(name), lifetime: limits.codeLifetime) {
            $0.remove(digest, from: Self.name(host))
        }
    }

    /// Uses a code up, at whichever node it was requested; throws when it is wrong.
    func consumeCode(_ digest: [UInt8], for name: String, from host: CallerHost?) async throws(AuthError) {
        guard let shared else { return try codes.consumeCode(digest, for: name, from: host, at: uptime()) }
        let now = now()
        try await shared.change(codesOf: hidden(name), lifetime: limits.codeLifetime) { codes throws(AuthError) in
            try codes.consumeCode(digest, from: Self.name(host), at: now)
        }
        codes.remove(digest, for: name, from: host)
    }

    // MARK: Account count

    /// Reads the number of accounts when other nodes create accounts too.
    func countAccounts() async throws(AuthError) {
        if let shared { accountCount = try await shared.count() }
    }

    /// Deletes expired records, unless a node has done so within an hour.
    func deleteExpiredIfDue() async {
        guard let shared,
            (try? await shared.acquireExpiryRun(every: .milliseconds(Self.expiryInterval))) == true
        else { return }
        try? await deleteExpired()
    }

    /// Makes room for accounts, at most once an hour, when the accounts or the guests come to their limit.
    func makeRoom() async throws(AuthError) {
        guard uptime() >= nextExpiryRun else { return }
        try await countAccounts()
        guard accountCount.all >= limits.accounts || isFull(ofGuests: accountCount) else { return }
        nextExpiryRun = uptime() + Self.expiryInterval
        // Not cancelled with the call that begins it.
        _ = await Task { try? await deleteExpired() }.value
    }

    /// True when guests expire earlier.
    private func isFull(ofGuests count: AccountCount) -> Bool { count.guests >= limits.guests - limits.guests / 4 }

    /// Deletes expired sessions, and guests that have none left; when guests are many, those that have been inactive for longer
    /// than they were active. Records that change meanwhile are left for the next time.
    func deleteExpired() async throws(AuthError) {
        let now = now()
        try await countAccounts()
        var after: String?
        while true {
            let page = try await records.versionedPage(
                "account/", of: Account.self, after: after, limit: Self.sweptAtOnce)
            for name in page.map(\.name) { try await deleteIfExpired(name, at: now) }
            guard page.count == Self.sweptAtOnce else { return }
            after = page.last.map { String($0.name.dropFirst("account/".count)) }
        }
    }

    private static let sweptAtOnce = 100
    private static let shortestIdleTime: Int64 = 24 * 60 * 60 * 1000

    private func deleteIfExpired(_ name: String, at now: Int64) async throws(AuthError) {
        let id = String(name.dropFirst("account/".count))
        let found = try await records.versionedAccount(id)
        guard let account = found.record else { return }
        let families = try await records.versionedFamilies(account.sessions)
        let isIdle =
            account.isGuest && isFull(ofGuests: accountCount) && Self.isIdle(families.compactMap(\.record), now)
        var remaining = account
        var changes = AccountRecords.Changes()
        var expected = [found.name: found.version]
        var ended: [String] = []
        for (session, family) in zip(account.sessions, families)
        where isIdle || family.record.map({ $0.expiry <= now }) ?? true {
            remaining.sessions.removeAll { $0 == session }
            try changes.set(nil, session: session)
            ended.append(session)
            expected[family.name] = family.version
        }
        let isRemoved = remaining.sessions.isEmpty && remaining.isGuest
        guard isRemoved || remaining != account else { return }
        try changes.set(isRemoved ? nil : remaining, id: id)
        if isRemoved { changes.count.replace(account, with: nil) }
        guard try await records.write(changes, expecting: expected) != nil else { return }
        accountCount += changes.count
        for session in ended { connections.endSession(session, because: .expired, at: now) }
    }

    /// Returns whether a guest has been inactive for longer than it was active, and for a day.
    private static func isIdle(_ families: [RefreshTokenFamily], _ now: Int64) -> Bool {
        guard let last = families.map(\.renewedAt).max(), let first = families.map({ $0.created ?? $0.renewedAt }).min()
        else { return true }
        return now - last > max(shortestIdleTime, last - first)
    }
}

/// Renewal, listing and end of sessions.
extension Accounts {
    func refresh(_ text: String, on connection: CallerConnection) async throws(AuthError) -> SessionGrant {
        try await loggingRefusals("to renew a session", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            guard let token = RefreshToken(text) else { throw .sessionEnded() }
            let successor = token.successor(key: refreshKey)
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                guard var family = try await transaction.family(token.session),
                    let account = try await transaction.account(family.account)
                else { throw .sessionEnded(connections.reason(token.session)) }
                let use = family.rotate(
                    token.digest, successor: successor.digest, at: now(),
                    lifetime: limits.sessionLifetime.wholeMilliseconds,
                    repeatWindow: limits.refreshReuseWindow.wholeMilliseconds)
                switch use {
                case .renewed:
                    var changes = AccountRecords.Changes()
                    try changes.set(family, session: token.session)
                    try await write(changes, in: transaction)
                case .repeated: break
                case .expired, .reused:
                    let end = use == .expired ? SessionEndReason.expired : .tokenReused
                    try await self.endSessions([token.session], of: family.account, because: end, in: transaction)
                    throw .sessionEnded(end)
                }
                return try grant(account.user(id: family.account), successor, on: connection, in: transaction)
            }
        }
    }

    func signOut(_ text: String, on connection: CallerConnection) async throws(AuthError) {
        try await loggingRefusals("to sign out", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            guard let token = RefreshToken(text) else { throw .sessionEnded() }
            try await inTurn(of: connection) { transaction throws(AuthError) in
                guard let family = try await transaction.family(token.session) else {
                    throw .sessionEnded(connections.reason(token.session))
                }
                // The client that signs out becomes anonymous and gets no notice that its session has ended.
                let isOwn = connection.session == token.session
                try await endSessions(
                    [token.session], of: family.account, because: .elsewhere, in: transaction,
                    leaving: isOwn ? connection : nil)
            }
        }
    }

    func sessions(of connection: CallerConnection) async throws(AuthError) -> [SessionInfo] {
        try await loggingRefusals("to see sessions", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                let present = try await present(on: connection, in: transaction)
                var sessions: [SessionInfo] = []
                for name in present.account.sessions.reversed() {
                    guard let family = try await transaction.family(name), now() < family.expiry else { continue }
                    sessions.append(
                        SessionInfo(
                            id: name, created: family.created.map(Self.date), lastRenewed: Self.date(family.renewedAt),
                            isCurrent: name == present.session, label: family.label))
                }
                return sessions
            }
        }
    }

    func endSession(_ id: String, for connection: CallerConnection) async throws(AuthError) {
        try await loggingRefusals("to end a session", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            try await inTurn(of: connection) { transaction throws(AuthError) in
                let present = try await present(on: connection, in: transaction)
                guard let name = present.account.sessions.first(where: { $0.isSameBytes(as: id) }) else {
                    throw .noSuchSession
                }
                try await endSessions([name], of: present.id, because: .elsewhere, in: transaction)
            }
        }
    }

    /// - Returns: the number of ended sessions.
    func endOtherSessions(of connection: CallerConnection) async throws(AuthError) -> Int {
        try await loggingRefusals("to end other sessions", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                let present = try await present(on: connection, in: transaction)
                let others = present.account.sessions.filter { $0 != present.session }
                try await endSessions(others, of: present.id, because: .elsewhere, in: transaction)
                return others.count
            }
        }
    }

    func label(_ text: String, sessionOf connection: CallerConnection) async throws(AuthError) {
        try await loggingRefusals("to name a session", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            guard text.utf8.count <= SessionInfo.maximumLabelLength, LogLine.of(text).isSameBytes(as: text) else {
                throw .invalidLabel
            }
            try await inTurn(of: connection) { transaction throws(AuthError) in
                var present = try await present(on: connection, in: transaction)
                present.family.label = text.isEmpty ? nil : text
                var changes = AccountRecords.Changes()
                try changes.set(present.family, session: present.session)
                try await write(changes, in: transaction)
            }
        }
    }

    private static func date(_ milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// Ends sessions of one account.
    ///
    /// - Parameter connection: a connection whose client ends its own session; it gets no notice.
    func endSessions(
        _ sessions: [String], of id: String, because end: SessionEndReason, in transaction: AccountTransaction,
        leaving connection: CallerConnection? = nil
    ) async throws(AuthError) {
        guard !sessions.isEmpty else { return }
        var changes = AccountRecords.Changes()
        for session in sessions { changes.endSession(session, because: end) }
        try await remove(sessions, from: id, &changes, in: transaction)
        try await write(changes, in: transaction)
        if let connection { connections.signOut(connection) }
        await connections.endSessions(sessions, because: end, at: now())
        for session in sessions {
            log.ended(session, of: id, connection == nil ? end.description : "its client has signed out")
        }
    }

    /// Removes sessions from their account. A guest is deleted with its last session, because it cannot be recovered.
    func remove(
        _ sessions: [String], from id: String, _ changes: inout AccountRecords.Changes,
        in transaction: AccountTransaction
    ) async throws(AuthError) {
        guard var account = try await transaction.account(id) else { return }
        account.sessions.removeAll { sessions.contains($0) }
        let isRemoved = account.isGuest && account.sessions.isEmpty
        try changes.set(isRemoved ? nil : account, id: id)
        if isRemoved { changes.count.replace(account, with: nil) }
    }
}
