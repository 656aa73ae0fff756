internal import Platform
internal import Trebuchet
internal import TrebuchetCluster

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
                attempts + consumptions("places", host, of: address, limits.codesPerAddress)
                    + [consumption("addresses", hidden(address), limits.codesPerAddressFromAllHosts)]
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
        for rate in consumptions("places", connection.host, of: address, limits.codesPerAddress) {
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
