/// What an administrator asks a server for: a line of JSON each, over a socket that is for the server's own user alone.
package enum AdminRequest: Codable, Sendable {
    case collections(after: String?, limit: Int)
    /// By the bytes of their ids. Fewer than asked for, and one at least, where more would not fit into a line.
    case documents(collection: String, after: String?, limit: Int)
    case removeDocuments(collection: String, ids: [DocumentID])
    /// The documents that were created first, so many at most.
    case removeOldest(collection: String, limit: Int)
    /// All documents at one moment: answered with a line for each, and with `end`.
    case export(collection: String)
    case restore(collection: String, documents: [Document], replaces: Bool)
    case rooms(after: String?, limit: Int)
    /// By the bytes of their stays; as many as with documents.
    case members(room: String, after: String?, limit: Int)
    case kick(stay: String, room: String, seconds: Int)
    case accounts(after: String?, limit: Int)
    /// Accounts are named by their ids or mail addresses.
    case account(name: String)
    case sessions(account: String?, after: String?, limit: Int)
    case setRole(role: String, account: String, isGranted: Bool)
    case removeAccount(name: String)
    case endSession(name: String)

    private enum KickCodingKeys: String, CodingKey { case stay = "session", room, seconds }

    /// For the log.
    var text: String {
        switch self {
        case .collections: "list collections"
        case .documents(let collection, _, _): "list documents of '\(collection)'"
        case .removeDocuments(let collection, let ids):
            "remove \(ids.map { "'\($0)'" }.joined(separator: ", ")) from collection '\(collection)'"
        case .removeOldest(let collection, let limit): "remove \(limit) documents of collection '\(collection)'"
        case .export(let collection): "export collection '\(collection)'"
        case .restore(let collection, let documents, let replaces):
            "import \(documents.count) documents into '\(collection)', \(replaces ? "replacing" : "skipping") those that are there"
        case .rooms: "list rooms"
        case .members(let room, _, _): "list members of '\(room)'"
        case .kick(let stay, let room, let seconds): "kick '\(stay)' out of '\(room)' for \(seconds) s"
        case .accounts: "list accounts"
        case .account(let name): "look at account '\(name)'"
        case .sessions(let account, _, _): "list sessions\(account.map { " of '\($0)'" } ?? "")"
        case .setRole(let role, let account, true): "grant role '\(role)' to '\(account)'"
        case .setRole(let role, let account, false): "take role '\(role)' from '\(account)'"
        case .removeAccount(let name): "remove account '\(name)'"
        case .endSession(let name): "end session '\(name)'"
        }
    }
}

/// The answer to a request, a line of JSON.
package enum AdminAnswer: Codable, Sendable {
    case collections([CollectionSummary])
    case documents([Document])
    /// How many were removed.
    case removed(Int)
    /// One of those that are exported.
    case document(Document)
    /// So many were exported.
    case end(Int)
    case restored(ImportOutcome)
    case rooms([RoomSummary])
    case members([RoomMemberSummary])
    case accounts([AccountSummary])
    case sessions([SessionSummary])
    /// Whether anything was changed.
    case done(Bool)
    /// Whether a role is new to the account, and what is odd about it.
    case granted(isNew: Bool, warning: String?)
    /// Why it was not done.
    case failed(String)
}
