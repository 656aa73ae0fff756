internal import Platform
internal import Trebuchet

/// Account and session operations for administrators.
extension Accounts {
    /// Returns accounts, sorted by the bytes of their ids.
    func summaries(after: String?, limit: Int) async throws(AuthError) -> [AccountSummary] {
        try await records.page("account/", of: Account.self, after: after, limit: limit).map { id, account in
            AccountSummary(id: id, account, connections)
        }
    }

    /// Returns the account with an id or a mail address; nil when there is none.
    func summary(of name: String) async throws(AuthError) -> AccountSummary? {
        guard let id = try await id(of: name), let account = try await records.account(id) else { return nil }
        return AccountSummary(id: id, account, connections)
    }

    /// Returns sessions of one account or of all accounts, sorted by the bytes of their names.
    func sessions(of name: String?, after: String?, limit: Int) async throws(AuthError) -> [SessionSummary] {
        guard let name else {
            return try await records.page("session/", of: RefreshTokenFamily.self, after: after, limit: limit).map {
                SessionSummary(name: $0.name, $0.record, connections)
            }
        }
        guard let id = try await id(of: name), let account = try await records.account(id) else { return [] }
        var sessions: [SessionSummary] = []
        for session in account.sessions.sorted(by: { $0.precedesInBytes($1) }) where sessions.count < limit {
            guard after?.precedesInBytes(session) ?? true, let family = try await records.family(session) else {
                continue
            }
            sessions.append(SessionSummary(name: session, family, connections))
        }
        return sessions
    }

    /// Grants or revokes a role; it applies at once to existing connections, and to new ones.
    ///
    /// - Returns: nil when there is no such account; else whether the roles have changed.
    func setRole(_ role: String, of name: String, isGranted: Bool) async throws(AuthError) -> Bool? {
        try await inTurn(of: nil) { turn throws(AuthError) in
            guard let id = try await id(of: name), var account = try await turn.account(id) else { return nil }
            var roles = Set(account.roles ?? [])
            let isChanged = isGranted ? roles.insert(role).inserted : roles.remove(role) != nil
            guard isChanged else { return false }
            account.roles = roles.isEmpty ? nil : roles.sorted { $0.precedesInBytes($1) }
            var changes = AccountRecords.Changes()
            try changes.set(account, id: id)
            changes.change(account.user(id: id), sessions: account.sessions)
            try await write(changes, in: turn)
            return true
        }
    }

    /// Deletes an account, its address and the app's data of it, as its user can; returns false when there is none.
    func removeAccount(_ name: String) async throws(AuthError) -> Bool {
        guard let id = try await id(of: name), let account = try await records.account(id) else { return false }
        do {
            try await deletionHook?(account.user(id: id))
        } catch {
            log.storeFailed("the data of account \(id) was not deleted: \(error)")
            throw .notDeleted
        }
        guard try await delete(id, because: .accountDeleted) else { return false }
        log.deleted(id, by: "an operator")
        return true
    }

    /// Ends a session; returns false when there is none of the name.
    func endSession(_ session: String) async throws(AuthError) -> Bool {
        try await inTurn(of: nil) { turn throws(AuthError) in
            guard let family = try await turn.family(session) else { return false }
            try await endSessions([session], of: family.account, because: .administrator, in: turn)
            return true
        }
    }

    private func id(of name: String) async throws(AuthError) -> String? {
        guard name.contains("@") else { return name }
        guard let address = try? MailAddress(name) else { return nil }
        return try await records.owner(ofAddress: address.text)
    }
}

/// An account, as listed.
package struct AccountSummary: Codable, Sendable, Equatable {
    package let id: String
    /// Nil for an account without a verified address.
    package let email: String?
    /// The granted roles.
    package let roles: [String]
    package let sessions: Int
    /// The number of signed-in connections.
    package let connections: Int

    init(id: String, _ account: Account, _ connections: SessionConnections) {
        self.id = id
        email = account.email
        roles = account.roles ?? []
        sessions = account.sessions.count
        self.connections = account.sessions.reduce(0) { $0 + connections.count(of: $1) }
    }
}

/// A session of an account, as listed.
package struct SessionSummary: Codable, Sendable, Equatable {
    package let name: String
    package let account: String
    /// The client's label; nil for none.
    package let label: String?
    /// Milliseconds since 1970.
    package let renewedAt: Int64
    package let expiry: Int64
    package let connections: Int

    init(name: String, _ family: RefreshTokenFamily, _ connections: SessionConnections) {
        self.name = name
        account = family.account
        label = family.label
        (renewedAt, expiry) = (family.renewedAt, family.expiry)
        self.connections = connections.count(of: name)
    }
}
