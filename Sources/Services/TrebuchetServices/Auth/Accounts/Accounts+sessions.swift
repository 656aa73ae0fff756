internal import Platform
internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

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
