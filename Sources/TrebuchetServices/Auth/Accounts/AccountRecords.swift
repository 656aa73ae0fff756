#if canImport(FoundationEssentials)
    internal import Trebuchet
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// One user, as it is kept.
struct Account: Codable, Equatable {
    var email: String?
    /// Names of its sessions, the oldest first.
    var sessions: [String] = []
    /// Who it is at providers, as `Identity.name`; nil when it is at none.
    var identities: [String]?
    /// What an administrator has granted; nil for nothing.
    var roles: [String]?

    /// Whether nobody could be it again without a session.
    var isGuest: Bool { email == nil && identities?.isEmpty != false }

    func user(id: String) -> User { User(id: id, email: email, isGuest: isGuest, roles: roles) }
}

/// How many accounts there are.
struct AccountCount: Equatable {
    var all = 0
    /// Of these.
    var guests = 0

    /// An account takes the place of another; nil for none.
    mutating func replace(_ before: Account?, with after: Account?) {
        count(before, -1)
        count(after, 1)
    }

    private mutating func count(_ account: Account?, _ change: Int) {
        guard let account else { return }
        all += change
        if account.isGuest { guests += change }
    }
}

/// The records of accounts in a store: users by id, ids by address and by identity, sessions by name.
///
/// What a store throws becomes `AuthError.unavailable`; `report` is told the reason, which is not for clients.
struct AccountRecords: Sendable {
    /// What one change of accounts writes; all of it or nothing.
    struct Changes {
        fileprivate var values: [String: [UInt8]?] = [:]

        mutating func set(_ account: Account?, id: String) throws(AuthError) {
            values["account/" + id] = try AccountRecords.encode(account)
        }

        mutating func set(owner id: String?, ofAddress address: String) {
            values["address/" + address] = .some(id.map { Array($0.utf8) })
        }

        mutating func set(owner id: String?, ofIdentity name: String) {
            values["identity/" + name] = .some(id.map { Array($0.utf8) })
        }

        mutating func set(_ family: TokenFamily?, session: String) throws(AuthError) {
            values["session/" + session] = try AccountRecords.encode(family)
        }
    }

    private static let pageSize = 1000

    /// The namespace of all of it in the store.
    static let namespace = "auth"

    private let store: any StateStore
    private let report: @Sendable (String) -> Void

    init(_ store: any StateStore, report: @escaping @Sendable (String) -> Void) {
        self.store = store
        self.report = report
    }

    func account(_ id: String) async throws(AuthError) -> Account? { try await record("account/" + id) }

    func family(_ session: String) async throws(AuthError) -> TokenFamily? { try await record("session/" + session) }

    func owner(ofAddress address: String) async throws(AuthError) -> String? {
        try await value("address/" + address).map { String(decoding: $0, as: UTF8.self) }
    }

    func owner(ofIdentity name: String) async throws(AuthError) -> String? {
        try await value("identity/" + name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The secret that all keys are made of; made when it is first asked for.
    func secret() async throws(AuthError) -> [UInt8] {
        if let secret = try await value("secret") {
            guard secret.count == 32 else { throw damaged("secret") }
            return secret
        }
        let secret = [UInt8].random(count: 32)
        try await write(["secret": secret])
        return secret
    }

    func write(_ changes: Changes) async throws(AuthError) { try await write(changes.values) }

    /// Deletes sessions that have expired, and guests that have none left: nobody can be them again.
    ///
    /// - Returns: how many accounts there are.
    func sweep(at now: Int64) async throws(AuthError) -> AccountCount {
        var expired: Set<String> = []
        try await eachPage("session/") { (session, family: TokenFamily) throws(AuthError) in
            guard family.expiry <= now else { return nil }
            expired.insert(session)
            var changes = Changes()
            try changes.set(nil, session: session)
            return changes
        }
        var count = AccountCount()
        try await eachPage("account/") { (id, account: Account) throws(AuthError) in
            var kept = account
            kept.sessions.removeAll { expired.contains($0) }
            let isGone = kept.sessions.isEmpty && kept.isGuest
            if !isGone { count.replace(nil, with: kept) }
            guard isGone || kept != account else { return nil }
            var changes = Changes()
            try changes.set(isGone ? nil : kept, id: id)
            return changes
        }
        return count
    }

    /// Records whose names begin with `prefix`, which the names are given without.
    func page<Record: Decodable>(
        _ prefix: String, of type: Record.Type, after: String?, limit: Int
    ) async throws(AuthError) -> [(name: String, record: Record)] {
        let page: [StateEntry]
        do {
            page = try await store.list(Self.namespace, prefix: prefix, after: after.map { prefix + $0 }, limit: limit)
        } catch {
            throw unavailable(error)
        }
        var records: [(name: String, record: Record)] = []
        for entry in page {
            guard let record = try? JSONDecoder().decode(type, from: Data(entry.value)) else {
                throw damaged(entry.key.name)
            }
            records.append((String(entry.key.name.dropFirst(prefix.count)), record))
        }
        return records
    }

    private func eachPage<Record: Decodable>(
        _ prefix: String, _ change: (_ name: String, Record) throws(AuthError) -> Changes?
    ) async throws(AuthError) {
        var after: String?
        while true {
            let page: [StateEntry]
            do {
                page = try await store.list(Self.namespace, prefix: prefix, after: after, limit: Self.pageSize)
            } catch {
                throw unavailable(error)
            }
            var values: [String: [UInt8]?] = [:]
            for entry in page {
                let name = entry.key.name
                guard let record = try? JSONDecoder().decode(Record.self, from: Data(entry.value)) else {
                    throw damaged(name)
                }
                let changes = try change(String(name.dropFirst(prefix.count)), record)
                if let changes { values.merge(changes.values) { $1 } }
            }
            if !values.isEmpty { try await write(values) }
            guard page.count == Self.pageSize else { return }
            after = page.last?.key.name
        }
    }

    private func record<Record: Decodable>(_ name: String) async throws(AuthError) -> Record? {
        guard let bytes = try await value(name) else { return nil }
        guard let record = try? JSONDecoder().decode(Record.self, from: Data(bytes)) else { throw damaged(name) }
        return record
    }

    private func value(_ name: String) async throws(AuthError) -> [UInt8]? {
        do {
            return try await store.get(StateKey(Self.namespace, name))
        } catch {
            throw unavailable(error)
        }
    }

    private func write(_ values: [String: [UInt8]?]) async throws(AuthError) {
        do {
            try await store.write(
                values.map { name, value in
                    let key = StateKey(Self.namespace, name)
                    return value.map { .put($0, key) } ?? .delete(key)
                })
        } catch {
            throw unavailable(error)
        }
    }

    private static func encode(_ record: (some Encodable)?) throws(AuthError) -> [UInt8]? {
        guard let record else { return nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let data = try? encoder.encode(record) else { throw .unavailable }
        return Array(data)
    }

    private func unavailable(_ error: any Error) -> AuthError {
        report("the store of accounts failed: \(error)")
        return .unavailable
    }

    /// Never taken for one that is not there.
    private func damaged(_ name: String) -> AuthError {
        report("the record '\(name)' in the store of accounts is damaged")
        return .unavailable
    }
}
