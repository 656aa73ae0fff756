internal import Platform
internal import Trebuchet

/// Executes requests of administrators with the services of a server. It is not reachable by clients.
struct AdminCommandHandler: Sendable {
    /// The maximum number of entries of a page.
    static let maximumPageLength = 1_000
    /// The size in bytes at which a page of documents or members ends, so that it fits into a line.
    private static let pageBytes = 1 << 20

    let server: TrebuchetServer
    let collections: CollectionHost?
    let rooms: RoomHost?
    let accounts: Accounts?

    struct CommandRejected: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    /// Executes a request.
    ///
    /// - Parameters:
    ///   - uid: the user id of the administrator.
    ///   - send: sends an answer; throws when the connection is broken.
    func answer(
        _ request: AdminRequest, by uid: UInt32, _ send: (AdminResponse) async throws -> Void
    ) async throws {
        server.log("admin: uid \(uid): \(request.text)")
        let answer: AdminResponse
        do {
            if case .export(let name) = request { return try await export(name, send) }
            answer = try await self.answer(request)
        } catch let error as AdminConnection.Broken {
            throw error
        } catch {
            server.log("admin: uid \(uid): request failed: \(error)")
            answer = .failed("\(error)")
        }
        try await send(answer)
    }

    private func export(_ name: String, _ send: (AdminResponse) async throws -> Void) async throws {
        let documents = try await hosted(collections, CollectionHost.name).documents(of: name)
        for document in documents { try await send(.document(document)) }
        try await send(.end(documents.count))
    }

    private func answer(_ request: AdminRequest) async throws -> AdminResponse {
        switch request {
        case .collections(let after, let limit):
            let host = try hosted(collections, CollectionHost.name)
            return .collections(try await host.summaries(after: after, limit: try checked(limit)))
        case .documents(let name, let after, let limit):
            let all = try await hosted(collections, CollectionHost.name).documents(of: name)
            return .documents(page(of: all, after, try checked(limit), \.encodedByteCount, by: { $0.id.text }))
        case .removeDocuments(let name, let ids):
            return .removed(try await hosted(collections, CollectionHost.name).remove(ids, from: name))
        case .removeOldest(let name, let limit):
            guard limit > 0 else { throw CommandRejected("the number of documents to remove must be at least 1") }
            return .removed(try await hosted(collections, CollectionHost.name).removeOldest(limit, from: name))
        case .restore(let name, let documents, let replaces):
            let host = try hosted(collections, CollectionHost.name)
            return .restored(try await host.restore(documents, in: name, replaces: replaces))
        case .rooms(let after, let limit):
            let host = try hosted(rooms, RoomHost.name)
            return .rooms(host.summaries(prefix: "", after: after, limit: try checked(limit)))
        case .members(let room, let after, let limit):
            guard let members = await (try hosted(rooms, RoomHost.name)).members(of: room) else {
                throw CommandRejected("room '\(room)' does not exist")
            }
            return .members(
                page(
                    of: members, after, try checked(limit), { $0.storedPresence?.byteCount ?? 0 },
                    by: { $0.membershipID })
            )
        case .kick(let membershipID, let room, let seconds):
            let host = try hosted(rooms, RoomHost.name)
            guard (0...86_400).contains(seconds) else {
                throw CommandRejected("the duration of a kick must be 0 to 86400 seconds")
            }
            return .done(await host.kick(membershipID, from: room, for: .seconds(seconds)))
        case .export: return .end(0)
        case .accounts, .account, .sessions, .setRole, .removeAccount, .endSession:
            return try await answer(request, with: hosted(accounts, AuthService.name))
        }
    }

    private func answer(_ request: AdminRequest, with accounts: Accounts) async throws -> AdminResponse {
        switch request {
        case .accounts(let after, let limit):
            return .accounts(try await accounts.summaries(after: after, limit: try checked(limit)))
        case .account(let name):
            return .accounts([try await accounts.summary(of: name)].compactMap(\.self))
        case .sessions(let account, let after, let limit):
            if let account, try await accounts.summary(of: account) == nil { throw noAccount(account) }
            return .sessions(try await accounts.sessions(of: account, after: after, limit: try checked(limit)))
        case .setRole(let role, let account, let isGranted):
            guard CollectionLimits.isName(role), !RoleSet.words.contains(role) else {
                throw CommandRejected("'\(role)' is not a valid role; use letters, digits, -, _ and .")
            }
            guard let isChanged = try await accounts.setRole(role, of: account, isGranted: isGranted) else {
                throw noAccount(account)
            }
            return isGranted ? .granted(isNew: isChanged, warning: warning(of: role)) : .done(isChanged)
        case .removeAccount(let name): return .done(try await accounts.removeAccount(name))
        case .endSession(let name): return .done(try await accounts.endSession(name))
        default: throw CommandRejected("not a request about accounts")
        }
    }

    /// Returns a warning for a role that the current rules do not declare; nil when they do, or declare none.
    private func warning(of role: String) -> String? {
        let rulesFiles = [collections?.rules as? RulesFile, rooms?.rules as? RulesFile].compactMap(\.self)
        let known = Set(rulesFiles.flatMap(\.roles)).sorted { $0.precedesInBytes($1) }
        guard !known.isEmpty, !known.contains(where: { $0.isSameBytes(as: role) }) else { return nil }
        let hint = NearestMatch.find(role, in: known).map { "did you mean '\($0)'?" }
        return
            "the current rules do not name the role '\(role)'; \(hint ?? "they name \(known.joined(separator: ", "))")"
    }

    private func noAccount(_ name: String) -> CommandRejected { CommandRejected("account '\(name)' does not exist") }

    private func hosted<Host>(_ host: Host?, _ name: String) throws -> Host {
        guard let host else { throw CommandRejected("the server does not host \(name)") }
        return host
    }

    private func checked(_ limit: Int) throws -> Int {
        guard (1...Self.maximumPageLength).contains(limit) else {
            throw CommandRejected("the page size must be 1 to \(Self.maximumPageLength) entries")
        }
        return limit
    }

    /// Returns the next page, with at least one entry where there are any.
    private func page<Entry>(
        of all: [Entry], _ after: String?, _ limit: Int, _ bytes: (Entry) -> Int, by name: (Entry) -> String
    ) -> [Entry] {
        let rest = all.filter { after?.precedesInBytes(name($0)) ?? true }
        var remainingBytes = Self.pageBytes
        let page = rest.sorted { name($0).precedesInBytes(name($1)) }.prefix(limit).prefix { entry in
            defer { remainingBytes -= bytes(entry) }
            return remainingBytes > 0
        }
        return Array(page)
    }
}
