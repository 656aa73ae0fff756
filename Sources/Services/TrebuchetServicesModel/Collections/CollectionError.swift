internal import TrebuchetActors

/// An error of a collection.
public enum CollectionError: Error, Codable, Sendable, Hashable {
    /// The server does not track callers' connections: it needs `access.identifiesCallers = true`.
    case unknownCaller
    /// The name of the collection is empty, too long, or has characters other than letters, digits, `-`, `_` and `.`.
    case invalidName
    /// The document cannot be stored, or the command is invalid.
    case invalidDocument(String)
    /// The query exceeds a limit, or has a field without a name or a cursor of another order; the text gives the reason.
    case invalidQuery(String)
    /// The document to change does not exist.
    case notFound(id: String)
    /// A document with the id of the new one already exists.
    case alreadyExists(id: String)
    /// The collection's rules do not authorize the action; the reason names the rule, and a field when the rule is about one.
    case forbidden(CollectionAction, id: String, reason: String? = nil)
    /// The condition of a write does not hold.
    ///
    /// - Parameters:
    ///   - revision: the revision of the document; nil when it does not exist.
    ///   - found: the current values of the condition's fields, without large ones.
    case conditionFailed(id: String, revision: Int?, found: JSONObject)
    /// The field of a link is not an array.
    case notAnArray(id: String, field: String)
    /// The field of an increment is not a number.
    case notANumber(id: String, field: String)
    /// The sum exceeds the exact range of an `Int64`, or the range of a double.
    case numberOverflow(id: String, field: String)
    /// The document to link to does not exist, or the caller may not read it.
    case linkTargetMissing(id: String, collection: String)
    /// A transaction has too many commands.
    case tooManyCommands(limit: Int)
    /// The JSON of the document would exceed the collection's limit in bytes.
    case documentTooLarge(id: String, bytes: Int, limit: Int)
    /// Arrays and objects are nested too deeply.
    case tooDeep(limit: Int)
    /// The collection has the maximum number of documents.
    case tooManyDocuments(limit: Int)
    /// The creator of the document, or its host, has used its quota of the collection, while the rest is reserved for others.
    ///
    /// - Parameters:
    ///   - of: `documents` or `bytes`.
    ///   - limit: the current quota.
    ///   - setting: the setting of the quota: `principalQuotaDivisor` or `hostQuotaDivisor`.
    case shareUsedUp(of: String, limit: Int, setting: String)
    /// The documents of the collection have the maximum number of bytes.
    case collectionTooLarge(limit: Int)
    /// The server has the maximum number of collections.
    case tooManyCollections(limit: Int)
    /// The connection, its principal, its host or the server has the maximum number of different queries open.
    case tooManyQueries(limit: Int)
    /// The open queries of the connection, its principal or its host, or the collections that its host has loaded, have the maximum
    /// number of bytes.
    case clientTooLarge(limit: Int)
    /// The open queries and loaded collections of the server, or its buffered data, have the maximum number of bytes.
    case serverTooLarge(limit: Int)
    /// The connection exceeds its rate of writes or reads.
    case rateLimited(retryAfterMilliseconds: Int)
    /// The store has refused the write. The first of several mutations may have been executed: the client must repeat all of
    /// them unchanged.
    case storeFailed(String)
    /// The write may have been executed: the store did not respond, or the collection has moved to another node. The client
    /// must repeat the same mutations; each is executed once.
    case unknownOutcome(String)
    /// The collection is being deactivated, or one that the write links to is moving to another node. The first mutations
    /// of the call may have been executed. The client must repeat the same mutations; each is executed once.
    case closed
    /// The mutation arrived after newer ones of its client.
    case outdated
    /// The number of the mutation was used for another one before; nothing was executed.
    case numberReused
    /// The connection is not signed in as the account of these writes; nothing was executed.
    case otherAccount
    /// The account of the write is signed out; the write waits at the client until it is signed in there again.
    case signedOut
    /// The server accepts no writes of this client: it hosts no collections, or rejects the client.
    case refused(String)
    /// The maximum number of writes already waits to be sent.
    case tooManyPending(limit: Int)
    /// Pending writes could not be stored in a file, or not be read from it.
    case pendingNotPersisted(String)
    /// A document does not decode as the app's type.
    ///
    /// - Parameter reason: the member that is missing, or of another type.
    case unreadable(id: String, reason: String? = nil)
    /// The query has no result yet: an update needs the document, to compare it with the changed one.
    case notLoaded(id: String)
    /// The document is not among the items of this query: an update needs it, to compare it with the changed one.
    case notAmongItems(id: String)
    /// The client was closed before the server had the write. It is stored, and sent when a backend with its folder uses the
    /// collection.
    case persistedForLater
    /// The value of a collection cannot be assigned; use `create`, `update` and the other commands.
    case notAssignable
    /// There is no `TrebuchetBackend` for the key.
    case noBackend
}

extension CollectionError: NamedError {
    package static var wireName: String { "TrebuchetServices.CollectionError" }
}

extension CollectionError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownCaller:
            "the server does not identify callers; set an AccessPolicy with identifiesCallers = true"
        case .invalidName:
            "a collection name must have 1 to \(CollectionLimits.maximumNameLength) letters, digits, '-', '_' and '.'"
        case .invalidDocument(let reason): "the document cannot be stored: \(reason)"
        case .invalidQuery(let reason): "invalid query: \(reason)"
        case .notFound(let id): "document '\(id)' does not exist"
        case .alreadyExists(let id): "document '\(id)' already exists"
        case .forbidden(let action, let id, let reason):
            "the rules of the collection do not allow you to \(action) document '\(id)'\(reason.map { ": \($0)" } ?? "")"
        case .conditionFailed(let id, nil, _): "the condition does not hold: document '\(id)' does not exist"
        case .conditionFailed(let id, let revision?, let found):
            "the condition does not hold: document '\(id)' is at revision \(revision)"
                + (found.isEmpty ? "" : " with \(String(decoding: JSONValue.object(found).json, as: UTF8.self))")
        case .notAnArray(let id, let field): "field '\(field)' of document '\(id)' is not an array"
        case .notANumber(let id, let field): "field '\(field)' of document '\(id)' is not a number"
        case .numberOverflow(let id, let field):
            "the sum for field '\(field)' of document '\(id)' exceeds the range of numbers"
        case .linkTargetMissing(let id, let collection):
            "link target '\(id)' does not exist in collection '\(collection)'; create it first"
        case .tooManyCommands(let limit): "the transaction has more than \(limit) commands; split it"
        case .tooDeep(let limit): "values are nested deeper than \(limit) arrays and objects"
        case .documentTooLarge(let id, let bytes, let limit):
            "document '\(id)' has \(bytes) bytes; at most \(limit) are allowed"
        case .tooManyDocuments(let limit): "the collection has reached its limit of \(limit) documents"
        case .collectionTooLarge(let limit): "the collection has reached its limit of \(limit) bytes"
        case .shareUsedUp(let what, let limit, let setting):
            "quota exceeded: at most \(limit) \(what) of the collection now (\(setting)); delete some first"
        case .tooManyCollections(let limit): "the server has reached its limit of \(limit) collections"
        case .tooManyQueries(let limit): "the limit of \(limit) different open queries is reached; close one first"
        case .clientTooLarge(let limit):
            "the open queries and loaded collections of the client have reached their limit of \(limit) bytes; close a query first"
        case .serverTooLarge(let limit):
            "the open queries and loaded collections of the server have reached their limit of \(limit) bytes; try again later"
        case .rateLimited(let wait): "call rate limit exceeded; try again in \(wait) ms"
        case .storeFailed(let reason): "the write could not be stored: \(reason)"
        case .unknownOutcome(let reason): "the outcome of the write is unknown; repeat it unchanged: \(reason)"
        case .closed: "the collection is being deactivated or moved; try again"
        case .outdated: "the write was not applied: newer writes of its client arrived before it"
        case .numberReused: "the write was not applied: its client already used its number for another write"
        case .otherAccount: "the connection is not signed in as the writer; the write was not applied"
        case .signedOut: "the writer is signed out; the write is sent after the next sign-in of this account"
        case .refused(let reason): "the server does not accept writes: \(reason)"
        case .tooManyPending(let limit): "the limit of \(limit) unsent writes is reached"
        case .pendingNotPersisted(let reason): "unsent writes are not persisted: \(reason)"
        case .unreadable(let id, let reason):
            "document '\(id)' does not decode\(reason.map { ": \($0)" } ?? " in this collection")"
        case .notLoaded(let id):
            "document '\(id)' cannot be updated before the first result; wait until isLoading is false. "
                + "merge, increment, link and delete are possible now"
        case .notAmongItems(let id):
            "document '\(id)' is not among the items of this query; update it through one that has it. "
                + "merge, increment, link and delete do not need it"
        case .persistedForLater: "the client was closed; the write is persisted and sent after the next start"
        case .notAssignable: "the value of a collection cannot be set; use create, update and the other commands"
        case .noBackend: "no backend is set; call TrebuchetBackend.use(_:), or create the value within its scope"
        }
    }
}
