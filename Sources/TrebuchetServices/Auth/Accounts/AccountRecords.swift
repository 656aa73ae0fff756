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

/// How many accounts there are, or how many more.
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

    static func += (count: inout Self, more: Self) {
        count.all += more.all
        count.guests += more.guests
    }
}

/// The records of accounts on a shelf: users by id, ids by address and by identity, sessions by name.
///
/// What a shelf throws becomes `AuthError.unavailable`; `report` is told the reason, which is not for clients.
struct AccountRecords: Sendable {
    /// What one change of accounts writes; all of it or nothing.
    struct Changes {
        fileprivate(set) var values: [String: [UInt8]?] = [:]
        /// How many accounts there are more.
        var count = AccountCount()
        /// What all nodes are told.
        var news = SessionNews()

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

        /// A session ends: it is deleted, and its connections lose their rights.
        mutating func end(_ session: String, because end: SessionEnd) {
            values["session/" + session] = .some(nil)
            news.ended.append(SessionNews.End(session: session, why: end))
        }

        /// Somebody is somebody else from now on, with all sessions that are the account's.
        mutating func change(_ user: User, sessions: [String]) {
            news.changed.append(SessionNews.Change(user: user, sessions: sessions))
        }

        fileprivate mutating func set(secret: [UInt8]) { values[AccountRecords.secretName] = secret }
    }

    private static let pageSize = 1000
    private static let secretName = "secret"

    /// The namespace of all of it in the store.
    static let namespace = "auth"

    private let shelf: any AccountShelf
    private let report: @Sendable (String) -> Void

    init(_ store: any StateStore, report: @escaping @Sendable (String) -> Void) {
        self.init(at: StoreShelf(store: store), report: report)
    }

    init(at shelf: any AccountShelf, report: @escaping @Sendable (String) -> Void) {
        self.shelf = shelf
        self.report = report
    }

    var isShared: Bool { shelf.isShared }

    func account(_ id: String) async throws(AuthError) -> Account? { try await versionedAccount(id).record }

    func family(_ session: String) async throws(AuthError) -> TokenFamily? {
        try await versionedFamily(session).record
    }

    func owner(ofAddress address: String) async throws(AuthError) -> String? {
        try await versionedOwner(ofAddress: address).record
    }

    // MARK: With what they are known by when they are written again

    /// A record, or none, as it was read.
    struct Versioned<Record> {
        /// Where it stands.
        let name: String
        let record: Record?
        let version: UInt64
    }

    func versionedAccount(_ id: String) async throws(AuthError) -> Versioned<Account> {
        try await record("account/" + id)
    }

    func versionedFamily(_ session: String) async throws(AuthError) -> Versioned<TokenFamily> {
        try await record("session/" + session)
    }

    /// Those of several sessions, in their order.
    func versionedFamilies(_ sessions: [String]) async throws(AuthError) -> [Versioned<TokenFamily>] {
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
            name: name, record: value.map { String(decoding: $0.bytes, as: UTF8.self) }, version: value?.version ?? 0)
    }

    /// The secret that all keys are made of; made when it is first asked for. Of nodes that make one at once all get the same.
    func secret() async throws(AuthError) -> [UInt8] {
        while true {
            if let secret = try await values([Self.secretName])[0]?.bytes {
                guard secret.count == 32 else { throw damaged(Self.secretName) }
                return secret
            }
            let secret = [UInt8].random(count: 32)
            var changes = Changes()
            changes.set(secret: secret)
            if try await write(changes, expecting: [Self.secretName: 0]) != nil { return secret }
        }
    }

    /// - Returns: the number of the change; nil when something is not as expected any more, and nothing was done.
    @discardableResult
    func write(_ changes: Changes, expecting expected: [String: UInt64] = [:]) async throws(AuthError) -> UInt64? {
        do {
            return try await shelf.write(changes, expecting: expected)
        } catch {
            throw unavailable(error)
        }
    }

    /// Deletes sessions that have expired, and guests that have none left: nobody can be them again. For a shelf that is not shared.
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
        try await versionedPage(prefix, of: type, after: after, limit: limit).map {
            (name: String($0.name.dropFirst(prefix.count)), record: $0.record!)
        }
    }

    /// The same, with their whole names.
    func versionedPage<Record: Decodable>(
        _ prefix: String, of type: Record.Type, after: String?, limit: Int
    ) async throws(AuthError) -> [Versioned<Record>] {
        let page: [(name: String, value: ShelfValue)]
        do {
            page = try await shelf.page(prefix, after: after.map { prefix + $0 }, limit: limit)
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
        _ name: String, _ value: ShelfValue?
    ) throws(AuthError) -> Versioned<Record> {
        guard let value else { return Versioned(name: name, record: nil, version: 0) }
        guard let record = try? JSONDecoder().decode(Record.self, from: Data(value.bytes)) else { throw damaged(name) }
        return Versioned(name: name, record: record, version: value.version)
    }

    private func values(_ names: [String]) async throws(AuthError) -> [ShelfValue?] {
        do {
            return try await shelf.values(names)
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
        report("the store of accounts failed: \(error)")
        return .unavailable
    }

    /// Never taken for one that is not there.
    private func damaged(_ name: String) -> AuthError {
        report("the record '\(name)' in the store of accounts is damaged")
        return .unavailable
    }
}
