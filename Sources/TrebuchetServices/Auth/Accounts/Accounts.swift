internal import Networking
internal import QStream
internal import Synchronization
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
    private let records: AccountRecords
    private let mailer: any MagicCodeMailer
    private let limits: AuthLimits
    private let report: @Sendable (String) -> Void
    /// Milliseconds since 1970.
    private let now: @Sendable () -> Int64

    private let tokens: AccessTokens
    private let refreshKey: [UInt8]
    private let codeKey: [UInt8]
    nonisolated let connections = SessionConnections()

    /// Held by the one who changes what is kept.
    private let turn = AsyncBinarySemaphore()
    private var accountCount: Int
    private var nextSweep: Int64
    private var codes: MagicCodes
    private var mailsInFlight = 0
    private var addressRates: RateTable
    private var connectionRates: RateTable
    private var hostRates: RateTable

    /// Accounts that last as long as the process.
    ///
    /// - Parameters:
    ///   - store: where accounts and sessions are kept. Default: in memory.
    ///   - mailer: what sends magic codes.
    ///   - report: told, in a line, what the server's operator should know and clients should not: why mail was not sent.
    ///     Default: nobody.
    public init(
        store: any StateStore = MemoryStore(), mailer: any MagicCodeMailer, limits: AuthLimits = AuthLimits(),
        report: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws(AuthError) {
        try await self.init(store: store, mailer: mailer, limits: limits, report: report) {
            Int64(Date().timeIntervalSince1970 * 1000)
        }
    }

    /// - Parameter now: milliseconds since 1970.
    package init(
        store: any StateStore, mailer: any MagicCodeMailer, limits: AuthLimits = AuthLimits(),
        report: @escaping @Sendable (String) -> Void = { _ in }, now: @escaping @Sendable () -> Int64
    ) async throws(AuthError) {
        records = AccountRecords(store, report: report)
        self.mailer = mailer
        self.limits = limits
        self.report = report
        self.now = now
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
        addressRates = RateTable(limits.codesPerAddress, capacity: limits.ratesKept)
        connectionRates = RateTable(limits.codesPerConnection, capacity: limits.ratesKept)
        hostRates = RateTable(limits.attemptsPerHost, capacity: limits.ratesKept)
    }

    private static let sweepInterval: Int64 = 60 * 60 * 1000

    /// Lets anybody connect, and finds out who shows an access token: one that is wrong, has expired, or is of a session
    /// that has ended, is answered 401. Set `origins` too if browsers may come.
    public nonisolated var accessPolicy: AccessPolicy {
        var policy = AccessPolicy { [self] request in
            guard let token = request.bearerToken else { return nil }
            let principal = try tokens.verify(token)
            guard let session = principal.claims["session"], try await records.family(session) != nil else {
                throw AccessDenied.unauthenticated("the session has ended")
            }
            return principal
        }
        policy.onConnect = { [connections] in connections.add($0) }
        return policy
    }

    // MARK: Signing in

    func signInAsGuest(on connection: CallerConnection) async throws(AuthError) -> SessionGrant {
        try hostRates.take(connection.host, at: now())
        return try await inTurn { () throws(AuthError) in
            if let present = try await account(of: connection), present.account.email == nil {
                return try await beginSession(of: present.id, present.account, on: connection)
            }
            return try await beginSession(of: try await newID(), Account(), on: connection)
        }
    }

    func sendMagicCode(
        to email: String, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let address = try MailAddress(email)
        let now = now()
        // The sender's own rates first: a flood does not use up that of the address.
        try connectionRates.take(connection.rateKey, at: now)
        try hostRates.take(connection.host, at: now)
        try addressRates.take(address.text, at: now)
        guard mailsInFlight < limits.mailsInFlight else { throw .limitReached("mailsInFlight") }
        let code = Self.newCode()
        let digest = digest(code, address)
        try codes.add(digest, for: address.text, at: now)
        mailsInFlight += 1
        defer { mailsInFlight -= 1 }
        do {
            try await mailer.send(code, to: address.text)
        } catch {
            codes.remove(digest, for: address.text)
            report("a magic code was not sent: \(error)")
            throw .mailNotSent
        }
        return SendMagicCodeResponse(validSeconds: Int(limits.codeLifetime.wholeMilliseconds / 1000))
    }

    func verifyMagicCode(
        email: String, code: String, on connection: CallerConnection
    ) async throws(AuthError) -> SessionGrant {
        let address = try MailAddress(email)
        try hostRates.take(connection.host, at: now())
        try codes.use(digest(code, address), for: address.text, at: now())
        return try await inTurn { () throws(AuthError) in
            if let owner = try await records.owner(ofAddress: address.text),
                let account = try await records.account(owner)
            {
                return try await beginSession(of: owner, account, on: connection)
            }
            let present = try await account(of: connection)
            if let present, present.account.email == nil {
                var account = present.account
                account.email = address.text
                return try await beginSession(of: present.id, account, on: connection)
            }
            return try await beginSession(of: try await newID(), Account(email: address.text), on: connection)
        }
    }

    /// Six digits, each code as likely as any other.
    private static func newCode() -> String {
        var generator = SystemRandomNumberGenerator()
        let digits = String(Int.random(in: 0..<1_000_000, using: &generator))
        return String(repeating: "0", count: 6 - digits.count) + digits
    }

    /// The address is in it too, so that equal codes do not look equal.
    private func digest(_ code: String, _ address: MailAddress) -> [UInt8] {
        Digest.hmacSHA256(Array("\(address.text)\n\(code)".utf8), key: codeKey)
    }

    // MARK: Sessions

    func refresh(_ text: String, on connection: CallerConnection) async throws(AuthError) -> SessionGrant {
        guard let token = RefreshToken(text) else { throw .sessionEnded }
        let successor = token.successor(key: refreshKey)
        return try await inTurn { () throws(AuthError) in
            guard var family = try await records.family(token.session),
                let account = try await records.account(family.account)
            else { throw .sessionEnded }
            let use = family.use(
                token.digest, successor: successor.digest, at: now(),
                lifetime: limits.sessionLifetime.wholeMilliseconds,
                repeatWindow: limits.repeatWindow.wholeMilliseconds)
            switch use {
            case .renewed:
                var changes = AccountRecords.Changes()
                try changes.set(family, session: token.session)
                try await records.write(changes)
            case .repeated: break
            case .expired, .reused:
                try await end(token.session, of: family.account)
                throw .sessionEnded
            }
            return try grant(User(id: family.account, email: account.email), successor, on: connection)
        }
    }

    func signOut(_ text: String) async throws(AuthError) {
        guard let token = RefreshToken(text) else { throw .sessionEnded }
        try await inTurn { () throws(AuthError) in
            guard let family = try await records.family(token.session) else { throw .sessionEnded }
            try await end(token.session, of: family.account)
        }
    }

    /// The account that a connection is signed in to, if its session goes on.
    private func account(of connection: CallerConnection) async throws(AuthError) -> (id: String, account: Account)? {
        guard let session = connection.session, let family = try await records.family(session),
            let account = try await records.account(family.account)
        else { return nil }
        return (family.account, account)
    }

    /// The id of an account to be made, when there is room for it.
    private func newID() async throws(AuthError) -> String {
        if accountCount >= limits.accounts, now() >= nextSweep {
            nextSweep = now() + Self.sweepInterval
            accountCount = try await records.sweep(at: now())
        }
        guard accountCount < limits.accounts else { throw .limitReached("accounts") }
        return Base64URL.encode(.random(count: 16))
    }

    /// Writes the account with a new session, which takes the place of the one that the connection had.
    private func beginSession(
        of id: String, _ account: Account, on connection: CallerConnection
    ) async throws(AuthError) -> SessionGrant {
        let token = RefreshToken.random()
        let family = TokenFamily(
            account: id, token: token.digest, at: now(), lifetime: limits.sessionLifetime.wholeMilliseconds)
        var account = account
        var changes = AccountRecords.Changes()
        var ended: [String] = []
        var countChange = try await records.account(id) == nil ? 1 : 0
        if let before = connection.session, let owner = try await records.family(before)?.account {
            ended.append(before)
            if owner == id {
                account.sessions.removeAll { $0 == before }
            } else {
                countChange += try await remove(before, from: owner, &changes)
            }
        }
        account.sessions.append(token.session)
        while account.sessions.count > limits.sessionsPerAccount { ended.append(account.sessions.removeFirst()) }
        for session in ended { try changes.set(nil, session: session) }
        try changes.set(family, session: token.session)
        try changes.set(account, id: id)
        if let email = account.email { changes.set(owner: id, ofAddress: email) }
        try await records.write(changes)
        accountCount += countChange
        let grant = try grant(User(id: id, email: account.email), token, on: connection)
        for session in ended { connections.end(session) }
        return grant
    }

    private func end(_ session: String, of id: String) async throws(AuthError) {
        var changes = AccountRecords.Changes()
        try changes.set(nil, session: session)
        let countChange = try await remove(session, from: id, &changes)
        try await records.write(changes)
        accountCount += countChange
        connections.end(session)
    }

    /// Takes a session from its account; a guest goes with its last one, since nobody can be it again.
    ///
    /// - Returns: what becomes of the number of accounts.
    private func remove(
        _ session: String, from id: String, _ changes: inout AccountRecords.Changes
    ) async throws(AuthError) -> Int {
        guard var account = try await records.account(id) else { return 0 }
        account.sessions.removeAll { $0 == session }
        let isGone = account.email == nil && account.sessions.isEmpty
        try changes.set(isGone ? nil : account, id: id)
        return isGone ? -1 : 0
    }

    /// Signs the connection in.
    private func grant(
        _ user: User, _ token: RefreshToken, on connection: CallerConnection
    ) throws(AuthError) -> SessionGrant {
        guard let grant = try? tokens.grant(user, token) else { throw .unavailable }
        connections.signIn(
            connection, AccessTokens.principal(user, session: token.session), session: token.session)
        return grant
    }

    private func inTurn<Result>(_ body: () async throws(AuthError) -> Result) async throws(AuthError) -> Result {
        guard turn.waitingCount < limits.waiting else { throw .limitReached("waiting") }
        return try await turn.withLock(isolation: self, body)
    }
}

extension CallerConnection {
    /// The session that it is signed in by.
    fileprivate var session: String? { principal?.claims["session"] }
    fileprivate var rateKey: String { "\(ObjectIdentifier(self))" }
    /// Who may not escape a rate by connecting again. Clients in the process itself are one host.
    fileprivate var host: String { remoteAddress?.host ?? "" }
}
