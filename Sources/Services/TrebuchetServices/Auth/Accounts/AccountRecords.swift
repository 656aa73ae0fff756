#if canImport(FoundationEssentials)
    internal import Trebuchet
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The persisted form of one user.
struct Account: Codable, Equatable {
    var email: String?
    /// The names of the account's sessions, oldest first.
    var sessions: [String] = []
    /// The identities at providers, as `Identity.name`; nil for none.
    var identities: [String]?
    /// The roles granted by an administrator; nil for none.
    var roles: [String]?

    /// True when the account cannot be recovered without a session.
    var isGuest: Bool { email == nil && identities?.isEmpty != false }

    func user(id: String) -> User { User(id: id, email: email, isGuest: isGuest, roles: roles) }
}

/// A number of accounts, or a change of it.
struct AccountCount: Equatable {
    var all = 0
    /// The guests among them.
    var guests = 0

    /// Counts the replacement of one account by another; nil for none.
    mutating func replace(_ before: Account?, with after: Account?) {
        count(before, -1)
        count(after, 1)
    }

    private mutating func count(_ account: Account?, _ change: Int) {
        guard let account else { return }
        all += change
        if account.isGuest { guests += change }
    }

    static func += (count: inout Self, more: Self) {
        count.all += more.all
        count.guests += more.guests
    }

    static func -= (count: inout Self, less: Self) {
        count.all -= less.all
        count.guests -= less.guests
    }
}

/// The records of accounts in a storage: users by id, ids by address and by identity, sessions by name.
///
/// An error of the storage becomes `AuthError.unavailable`. Its text is passed to `report`, because clients must not see it.
struct AccountRecords: Sendable {
    /// The writes of one change of accounts, applied atomically.
    struct Changes {
        fileprivate(set) var values: [String: [UInt8]?] = [:]
        /// The change of the number of accounts.
        var count = AccountCount()
        /// The notices for all nodes.
        var notice = SessionChangeNotice()

        mutating func set(_ account: Account?, id: String) throws(AuthError) {
            values["account/" + id] = try AccountRecords.encode(account)
        }

        mutating func set(owner id: String?, ofAddress address: String) {
            values["address/" + address] = .some(id.map { Array($0.utf8) })
        }

        mutating func set(owner id: String?, ofIdentity name: String) {
            values["identity/" + name] = .some(id.map { Array($0.utf8) })
        }

        mutating func set(_ family: RefreshTokenFamily?, session: String) throws(AuthError) {
            values["session/" + session] = try AccountRecords.encode(family)
        }

        /// Ends a session: deletes it and revokes the authorization of its connections.
        mutating func endSession(_ session: String, because end: SessionEndReason) {
            values["session/" + session] = .some(nil)
            notice.ended.append(SessionChangeNotice.SessionTermination(session: session, reason: end))
        }

        /// Publishes a changed user to all sessions of the account.
        mutating func change(_ user: User, sessions: [String]) {
            notice.changed.append(SessionChangeNotice.Change(user: user, sessions: sessions))
        }

        fileprivate mutating func set(secret: [UInt8]) { values[AccountRecords.secretName] = secret }
    }

    private static let pageSize = 1000
    private static let secretName = "secret"

    /// The namespace of all records in the store.
    static let namespace = "auth"

    private let storage: any AccountStorage
    private let report: @Sendable (String) -> Void

    init(_ store: any StateStore, report: @escaping @Sendable (String) -> Void) {
        self.init(at: StoreAccountStorage(store: store), report: report)
    }

    init(at storage: any AccountStorage, report: @escaping @Sendable (String) -> Void) {
        self.storage = storage
        self.report = report
    }

    func account(_ id: String) async throws(AuthError) -> Account? { try await versionedAccount(id).record }

    func family(_ session: String) async throws(AuthError) -> RefreshTokenFamily? {
        try await versionedFamily(session).record
    }

    func owner(ofAddress address: String) async throws(AuthError) -> String? {
        try await versionedOwner(ofAddress: address).record
    }

    // MARK: Records with versions

    /// A record, or none, with the version that was read.
    struct Versioned<Record> {
        /// The key of the record.
        let name: String
        let record: Record?
        let version: UInt64
    }

    func versionedAccount(_ id: String) async throws(AuthError) -> Versioned<Account> {
        try await record("account/" + id)
    }

    func versionedFamily(_ session: String) async throws(AuthError) -> Versioned<RefreshTokenFamily> {
        try await record("session/" + session)
    }

    /// Returns the families of several sessions, in their order.
    func versionedFamilies(_ sessions: [String]) async throws(AuthError) -> [Versioned<RefreshTokenFamily>] {
        try await records(sessions.map { "session/" + $0 })
    }

    func versionedAccounts(_ ids: [String]) async throws(AuthError) -> [Versioned<Account>] {
        try await records(ids.map { "account/" + $0 })
    }

    func versionedOwner(ofAddress address: String) async throws(AuthError) -> Versioned<String> {
        try await owner("address/" + address)
    }

    func versionedOwner(ofIdentity name: String) async throws(AuthError) -> Versioned<String> {
        try await owner("identity/" + name)
    }

    private func owner(_ name: String) async throws(AuthError) -> Versioned<String> {
        let value = try await values([name])[0]
        return Versioned(
            name: name, record: value.bytes.map { String(decoding: $0, as: UTF8.self) }, version: value.version)
    }

    /// Returns the secret that all keys are derived from. It is created at the first use; nodes that create one at the same
    /// time all get the same.
    func secret() async throws(AuthError) -> [UInt8] {
        while true {
            let value = try await values([Self.secretName])[0]
            if let secret = value.bytes {
                guard secret.count == 32 else { throw damaged(Self.secretName) }
                return secret
            }
            let secret = [UInt8].random(count: 32)
            var changes = Changes()
            changes.set(secret: secret)
            if try await write(changes, expecting: [Self.secretName: value.version]) != nil { return secret }
        }
    }

    /// - Returns: the number of the change; nil when a version differs from `expected`, and nothing was written.
    @discardableResult
    func write(_ changes: Changes, expecting expected: [String: UInt64] = [:]) async throws(AuthError) -> UInt64? {
        do {
            return try await storage.write(changes, expecting: expected)
        } catch {
            throw unavailable(error)
        }
    }

    /// Deletes expired sessions, and guests that have none left, which cannot be recovered. For a storage that is not shared.
    ///
    /// - Returns: the number of accounts.
    func deleteExpired(at now: Int64) async throws(AuthError) -> AccountCount {
        var expired: Set<String> = []
        try await eachPage("session/") { (session, family: RefreshTokenFamily) throws(AuthError) in
            guard family.expiry <= now else { return nil }
            expired.insert(session)
            var changes = Changes()
            try changes.set(nil, session: session)
            return changes
        }
        var count = AccountCount()
        try await eachPage("account/") { (id, account: Account) throws(AuthError) in
            var remaining = account
            remaining.sessions.removeAll { expired.contains($0) }
            let isRemoved = remaining.sessions.isEmpty && remaining.isGuest
            if !isRemoved { count.replace(nil, with: remaining) }
            guard isRemoved || remaining != account else { return nil }
            var changes = Changes()
            try changes.set(isRemoved ? nil : remaining, id: id)
            return changes
        }
        return count
    }

    /// Returns records whose names begin with `prefix`; the returned names lack the prefix.
    func page<Record: Decodable>(
        _ prefix: String, of type: Record.Type, after: String?, limit: Int
    ) async throws(AuthError) -> [(name: String, record: Record)] {
        try await versionedPage(prefix, of: type, after: after, limit: limit).map {
            (name: String($0.name.dropFirst(prefix.count)), record: $0.record!)
        }
    }

    /// Returns the same page with versions and full names.
    func versionedPage<Record: Decodable>(
        _ prefix: String, of type: Record.Type, after: String?, limit: Int
    ) async throws(AuthError) -> [Versioned<Record>] {
        let page: [(name: String, value: AccountStorageValue)]
        do {
            page = try await storage.page(prefix, after: after.map { prefix + $0 }, limit: limit)
        } catch {
            throw unavailable(error)
        }
        var records: [Versioned<Record>] = []
        for (name, value) in page { records.append(try decode(name, value)) }
        return records
    }

    private func eachPage<Record: Decodable>(
        _ prefix: String, _ change: (_ name: String, Record) throws(AuthError) -> Changes?
    ) async throws(AuthError) {
        var after: String?
        while true {
            let page = try await page(prefix, of: Record.self, after: after, limit: Self.pageSize)
            var all = Changes()
            for (name, record) in page {
                if let changes = try change(name, record) { all.values.merge(changes.values) { $1 } }
            }
            if !all.values.isEmpty { try await write(all) }
            guard page.count == Self.pageSize else { return }
            after = page.last?.name
        }
    }

    private func record<Record: Decodable>(_ name: String) async throws(AuthError) -> Versioned<Record> {
        try decode(name, try await values([name])[0])
    }

    private func records<Record: Decodable>(_ names: [String]) async throws(AuthError) -> [Versioned<Record>] {
        var records: [Versioned<Record>] = []
        for (name, value) in zip(names, try await values(names)) { records.append(try decode(name, value)) }
        return records
    }

    private func decode<Record: Decodable>(
        _ name: String, _ value: AccountStorageValue
    ) throws(AuthError) -> Versioned<Record> {
        guard let bytes = value.bytes else { return Versioned(name: name, record: nil, version: value.version) }
        guard let record = try? JSONDecoder().decode(Record.self, from: Data(bytes)) else { throw damaged(name) }
        return Versioned(name: name, record: record, version: value.version)
    }

    private func values(_ names: [String]) async throws(AuthError) -> [AccountStorageValue] {
        do {
            return try await storage.values(names)
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
        if let error = error as? AuthError { return error }
        report("the account store failed: \(error)")
        return .unavailable
    }

    /// A damaged record is an error, never treated as a missing one.
    private func damaged(_ name: String) -> AuthError {
        report("record '\(name)' in the account store is damaged")
        return .unavailable
    }
}
