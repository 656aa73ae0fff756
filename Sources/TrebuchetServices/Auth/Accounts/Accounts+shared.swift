internal import Platform
internal import Trebuchet
internal import TrebuchetCluster

/// Rates and pending codes: in memory at one server, in the coordination store for several nodes.
extension Accounts {
    // MARK: Rates

    /// Takes the rates of a code for an address.
    func consumeCode(for address: String, _ connection: CallerConnection) async throws(AuthError) {
        guard let shared else { return try rates.consumeCode(for: address, connection.asker, at: uptime()) }
        try rates.check(.code, connection.asker, at: uptime())
        try await shared.consumeRates([
            rateConsumption("attempts", Self.name(connection.host), limits.attemptsPerHost),
            rateConsumption("places", describe(address, connection.host), limits.codesPerAddress),
            rateConsumption("addresses", hidden(address), limits.codesPerAddressFromAllHosts),
        ])
        rates.recordOperation(.code, connection.asker, at: uptime())
    }

    /// Takes the rates of a code that is tried, a guest, or an ID token.
    func consumeAttempt(_ connection: CallerConnection) async throws(AuthError) {
        guard let shared else { return try rates.consumeAttempt(connection.asker, at: uptime()) }
        try rates.check(.attempt, connection.asker, at: uptime())
        try await shared.consumeRates([rateConsumption("attempts", Self.name(connection.host), limits.attemptsPerHost)])
        rates.recordOperation(.attempt, connection.asker, at: uptime())
    }

    /// Takes the rates of a session that is renewed, listed, named or ended.
    func consumeRenewal(_ connection: CallerConnection) async throws(AuthError) {
        guard let shared else { return try rates.consumeRenewal(connection.asker, at: uptime()) }
        try rates.check(.renewal, connection.asker, at: uptime())
        try await shared.consumeRates([rateConsumption("renewals", Self.name(connection.host), limits.renewalsPerHost)])
        rates.recordOperation(.renewal, connection.asker, at: uptime())
    }

    /// Restores the rate of an address after a correct code: its user reads the mail and may request codes as at first.
    func usedCode(for address: String, _ connection: CallerConnection) async {
        guard let shared else { return rates.usedCode(for: address, connection.asker) }
        await shared.restore(RateKey("places", describe(address, connection.host)))
    }

    private func rateConsumption(_ kind: String, _ name: String, _ limit: RateLimit) -> RateConsumption {
        RateConsumption(
            RateKey(kind, name), interval: .seconds(1 / limit.callsPerSecond), burst: limit.burst,
            maximumEntries: limits.rateEntries)
    }

    private func describe(_ address: String, _ host: CallerHost?) -> String { Self.name(host) + " " + hidden(address) }

    /// The name of a host, the same at all nodes.
    private static func name(_ host: CallerHost?) -> String { host.map { String($0.number, radix: 16) } ?? "local" }

    /// Hides the address, which may belong to no account.
    private func hidden(_ address: String) -> String {
        Base64URL.encode(Digest.hmacSHA256(Array("address \(address)".utf8), key: codeKey))
    }

    // MARK: Codes

    func addCode(_ digest: [UInt8], for name: String, from host: CallerHost?) async throws(AuthError) {
        // Each node also counts the codes that it has sent.
        let gone = codes.addCode(digest, for: name, from: host, at: uptime())
        guard let shared else { return }
        let now = now()
        let until = now + limits.codeLifetime.wholeMilliseconds
        let tries = limits.codeAttempts
        try await shared.change(codesOf: hidden(name), lasting: limits.codeLifetime) { codes in
            codes.removeExpired(at: now)
            codes.addCode(digest, from: Self.name(host), until: until, tries: tries)
        }
        for one in gone { try await removeShared(one.digest, for: one.address, from: one.host) }
    }

    /// Removes a code whose mail was not sent.
    func remove(_ digest: [UInt8], for name: String, from host: CallerHost?) async {
        codes.remove(digest, for: name, from: host)
        // Errors are ignored: a code that no client has received cannot be used.
        try? await removeShared(digest, for: name, from: host)
    }

    private func removeShared(_ digest: [UInt8], for name: String, from host: CallerHost?) async throws(AuthError) {
        try await shared?.change(codesOf: hidden(name), lasting: limits.codeLifetime) {
            $0.remove(digest, from: Self.name(host))
        }
    }

    /// Uses a code up, at whichever node it was requested; throws when it is wrong.
    func consumeCode(_ digest: [UInt8], for name: String, from host: CallerHost?) async throws(AuthError) {
        guard let shared else { return try codes.consumeCode(digest, for: name, from: host, at: uptime()) }
        let now = now()
        try await shared.change(codesOf: hidden(name), lasting: limits.codeLifetime) { codes throws(AuthError) in
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

    /// Deletes expired sessions, and guests that have none left. Records that change meanwhile are left for the next time.
    func deleteExpired() async throws(AuthError) {
        let now = now()
        var after: String?
        while true {
            let page = try await records.versionedPage(
                "account/", of: Account.self, after: after, limit: Self.sweptAtOnce)
            for found in page { try await deleteIfExpired(found, at: now) }
            guard page.count == Self.sweptAtOnce else { return }
            after = page.last.map { String($0.name.dropFirst("account/".count)) }
        }
    }

    private static let sweptAtOnce = 100

    private func deleteIfExpired(_ found: AccountRecords.Versioned<Account>, at now: Int64) async throws(AuthError) {
        guard let account = found.record else { return }
        let families = try await records.versionedFamilies(account.sessions)
        var kept = account
        var changes = AccountRecords.Changes()
        var expected = [found.name: found.version]
        for (session, family) in zip(account.sessions, families) where family.record.map({ $0.expiry <= now }) ?? true {
            kept.sessions.removeAll { $0 == session }
            try changes.set(nil, session: session)
            expected[family.name] = family.version
        }
        let isGone = kept.sessions.isEmpty && kept.isGuest
        guard isGone || kept != account else { return }
        try changes.set(isGone ? nil : kept, id: String(found.name.dropFirst("account/".count)))
        if isGone { changes.count.replace(account, with: nil) }
        try await records.write(changes, expecting: expected)
    }
}
