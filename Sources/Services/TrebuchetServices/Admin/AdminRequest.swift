internal import Platform

/// A request of an administrator: one line of JSON each, over a socket that only the server's own user can open.
package enum AdminRequest: Codable, Sendable {
    case collections(after: String?, limit: Int)
    /// Sorted by the bytes of their ids. The page may have fewer entries than the limit, but at least one, so that it fits into
    /// a line.
    case documents(collection: String, after: String?, limit: Int)
    case removeDocuments(collection: String, ids: [DocumentID])
    /// Removes up to `limit` documents that were created first.
    case removeOldest(collection: String, limit: Int)
    /// Exports all documents at one moment: one line for each, then `end`.
    case export(collection: String)
    case restore(collection: String, documents: [Document], replaces: Bool)
    case rooms(after: String?, limit: Int)
    /// Sorted by the bytes of their identifiers; the page is limited as with documents.
    case members(room: String, after: String?, limit: Int)
    case kick(membershipID: String, room: String, seconds: Int)
    case accounts(after: String?, limit: Int)
    /// Accounts are named by their ids or mail addresses.
    case account(name: String)
    case sessions(account: String?, after: String?, limit: Int)
    case setRole(role: String, account: String, isGranted: Bool)
    case removeAccount(name: String)
    case endSession(name: String)

    private enum KickCodingKeys: String, CodingKey { case membershipID = "session", room, seconds }

    /// The text for the log.
    var text: String {
        switch self {
        case .collections: "list collections"
        case .documents(let collection, _, _): "list documents of '\(collection)'"
        case .removeDocuments(let collection, let ids):
            "remove \(ids.map { "'\($0)'" }.joined(separator: ", ")) from collection '\(collection)'"
        case .removeOldest(let collection, let limit):
            "remove \(limit.counted("document")) of collection '\(collection)'"
        case .export(let collection): "export collection '\(collection)'"
        case .restore(let collection, let documents, let replaces):
            "import \(documents.count.counted("document")) into '\(collection)', \(replaces ? "replacing" : "skipping") existing ones"
        case .rooms: "list rooms"
        case .members(let room, _, _): "list members of '\(room)'"
        case .kick(let membershipID, let room, let seconds):
            "kick member '\(membershipID)' from room '\(room)' for \(seconds) s"
        case .accounts: "list accounts"
        case .account(let name): "get account '\(name)'"
        case .sessions(let account, _, _): "list sessions\(account.map { " of '\($0)'" } ?? "")"
        case .setRole(let role, let account, true): "grant role '\(role)' to '\(account)'"
        case .setRole(let role, let account, false): "revoke role '\(role)' of '\(account)'"
        case .removeAccount(let name): "remove account '\(name)'"
        case .endSession(let name): "end session '\(name)'"
        }
    }
}

/// The response to a request, one line of JSON.
package enum AdminResponse: Codable, Sendable {
    case collections([CollectionSummary])
    case documents([Document])
    /// The number of removed documents.
    case removed(Int)
    /// One exported document.
    case document(Document)
    /// The number of exported documents.
    case end(Int)
    case restored(ImportOutcome)
    case rooms([RoomSummary])
    case members([RoomMemberSummary])
    case accounts([AccountSummary])
    case sessions([SessionSummary])
    /// True when the request has changed something.
    case done(Bool)
    /// True when the role is new to the account; with an optional warning.
    case granted(isNew: Bool, warning: String?)
    /// The reason why the request failed.
    case failed(String)
}
