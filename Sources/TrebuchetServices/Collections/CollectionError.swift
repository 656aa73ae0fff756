/// Why a collection does not do what it was asked for.
public enum CollectionError: Error, Codable, Sendable, Hashable {
    /// The server does not know its callers' connections: it needs `access.identifiesCallers = true`.
    case unknownCaller
    /// The name of the collection is empty, too long, or has other characters than letters, digits, `-`, `_` and `.`.
    case invalidName
    /// The document cannot be stored, or the command makes no sense.
    case invalidDocument(String)
    /// The query has too much of something, a field without a name, or a cursor of another order; the text says what.
    case invalidQuery(String)
    /// There is no document to be changed.
    case notFound(id: String)
    /// A document of this id is there, so none can be created.
    case alreadyExists(id: String)
    /// The collection's rules do not let the caller do this with the document; the reason names the rule, and a field when it is
    /// about one.
    case forbidden(CollectionAction, id: String, reason: String? = nil)
    /// The condition of a write does not hold.
    ///
    /// - Parameters:
    ///   - revision: of the document; nil when there is none.
    ///   - found: the fields that the condition names, as they are; without those that are too large.
    case conditionFailed(id: String, revision: Int?, found: JSONObject)
    /// Only an array has links.
    case notAnArray(id: String, field: String)
    /// Only a number is incremented.
    case notANumber(id: String, field: String)
    /// The number would be larger than what is exact, an `Int64`, or than what a double can be.
    case numberOverflow(id: String, field: String)
    /// There is no document to link to, or none that the caller may read.
    case linkTargetMissing(id: String, collection: String)
    /// More commands in one transaction than there may be.
    case tooManyCommands(limit: Int)
    /// The document would have more bytes of JSON than the collection's limit.
    case documentTooLarge(id: String, bytes: Int, limit: Int)
    /// Arrays and objects nest deeper than they may.
    case tooDeep(limit: Int)
    /// The collection has as many documents as it may.
    case tooManyDocuments(limit: Int)
    /// Who creates, or created, the document has as much of the collection as one may have while others need the rest.
    ///
    /// - Parameters:
    ///   - of: `documents` or `bytes`.
    ///   - limit: how much that is now.
    ///   - setting: whose share it is: `principalShare` or `hostShare`.
    case shareUsedUp(of: String, limit: Int, setting: String)
    /// The documents of the collection have as many bytes as they may.
    case collectionTooLarge(limit: Int)
    /// The server has as many collections as it may.
    case tooManyCollections(limit: Int)
    /// The connection, its principal, its host or the server has as many different queries open as it may.
    case tooManyQueries(limit: Int)
    /// More writes, or more reads, than a connection may make.
    case rateLimited(retryAfterMilliseconds: Int)
    /// The store has refused the write. The first of several mutations may be done: repeat all of them as they were.
    case storeFailed(String)
    /// The write may have been done: the store did not answer, or the collection went to another node meanwhile. Repeat the same
    /// mutations: each is done once.
    case unknownOutcome(String)
    /// The collection is just being taken away; it can be used again at once.
    case closed
    /// The mutation came after newer ones of its client.
    case outdated
    /// The number of the mutation was another one's before: nothing was done.
    case numberReused
    /// The connection is not signed in as the account whose writes these are: nothing was done.
    case otherAccount
    /// Who made the write is signed out, and it waits at the client until they are signed in there again.
    case signedOut
    /// The server takes no writes of this client: it hosts no collections, or does not let it in.
    case refused(String)
    /// So many writes wait to be sent already.
    case tooManyPending(limit: Int)
    /// Writes that wait could not be kept for the next start of the app, or not be read.
    case pendingNotKept(String)
    /// A document is no element of the app's type.
    ///
    /// - Parameter reason: which of its members is missing, or of another type.
    case unreadable(id: String, reason: String? = nil)
    /// Nothing has come yet of what the query finds: an update needs the document, to see what changes.
    case notLoaded(id: String)
    /// The document is not among the items of this query: an update needs it, to see what changes.
    case notAmongItems(id: String)
    /// The client was closed before the server had the write. It is kept, and sent when a backend with its folder uses the collection.
    case keptForLater
    /// The value of a collection cannot be set; use `create`, `update` and the other commands.
    case notAssignable
    /// There is no `TrebuchetBackend` that the key could use.
    case noBackend
}

extension CollectionError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownCaller:
            "the server does not know its callers: it needs an AccessPolicy with identifiesCallers = true"
        case .invalidName:
            "a collection's name has 1 to \(CollectionLimits.longestName) letters, digits, '-', '_' and '.'"
        case .invalidDocument(let reason): "the document cannot be stored: \(reason)"
        case .invalidQuery(let reason): "the query makes no sense: \(reason)"
        case .notFound(let id): "there is no document '\(id)'"
        case .alreadyExists(let id): "there is a document '\(id)' already"
        case .forbidden(let action, let id, let reason):
            "the rules of the collection do not let you \(action) document '\(id)'\(reason.map { ": \($0)" } ?? "")"
        case .conditionFailed(let id, nil, _): "the condition does not hold: there is no document '\(id)'"
        case .conditionFailed(let id, let revision?, let found):
            "the condition does not hold: document '\(id)' is at revision \(revision)"
                + (found.isEmpty ? "" : " with \(String(decoding: JSONValue.object(found).json, as: UTF8.self))")
        case .notAnArray(let id, let field): "the field '\(field)' of document '\(id)' is no array of links"
        case .notANumber(let id, let field): "the field '\(field)' of document '\(id)' is no number"
        case .numberOverflow(let id, let field):
            "the field '\(field)' of document '\(id)' would become too large a number"
        case .linkTargetMissing(let id, let collection):
            "there is no document '\(id)' to link to in collection '\(collection)'"
        case .tooManyCommands(let limit): "a transaction has \(limit) commands at most"
        case .tooDeep(let limit): "it nests deeper than \(limit) arrays and objects"
        case .documentTooLarge(let id, let bytes, let limit):
            "document '\(id)' of \(bytes) bytes is too large; \(limit) are allowed"
        case .tooManyDocuments(let limit): "the collection has \(limit) documents already"
        case .collectionTooLarge(let limit): "the documents of the collection have \(limit) bytes already"
        case .shareUsedUp(let what, let limit, let setting):
            "\(limit) \(what) of the collection are what one may have now; the rest is for others (\(setting))"
        case .tooManyCollections(let limit): "the server has \(limit) collections already"
        case .tooManyQueries(let limit): "\(limit) different queries are open already; close one first"
        case .rateLimited(let wait): "too many calls in too short a time; try again in \(wait) ms"
        case .storeFailed(let reason): "the write could not be kept: \(reason)"
        case .unknownOutcome(let reason): "the write may have been done; repeat it as it was: \(reason)"
        case .closed: "the collection is just being taken away; try again"
        case .outdated: "the write came after newer ones of its client and was not done"
        case .numberReused: "another write of the client had this number before; it was not done"
        case .otherAccount: "the connection is not signed in as who made the write; it was not done"
        case .signedOut: "who made the write is signed out; it waits until they are signed in again"
        case .refused(let reason): "the server takes no writes: \(reason)"
        case .tooManyPending(let limit): "\(limit) writes wait to be sent already"
        case .pendingNotKept(let reason): "writes that wait are not kept: \(reason)"
        case .unreadable(let id, let reason):
            "document '\(id)' is not what the app expects\(reason.map { ": \($0)" } ?? " in this collection")"
        case .notLoaded(let id):
            "document '\(id)' cannot be updated before the first result has come: wait until isLoading is false. "
                + "merge, increment, link and delete need not wait"
        case .notAmongItems(let id):
            "document '\(id)' is not among the items of this query: update it through one that has it. "
                + "merge, increment, link and delete do not need it"
        case .keptForLater: "the client was closed; the write is kept, and sent after the next start"
        case .notAssignable: "the value of a collection cannot be set; use create, update and the other commands"
        case .noBackend: "there is no backend: call TrebuchetBackend.use(_:), or make the value within its scope"
        }
    }
}
