/// What is to be done with one document.
enum DocumentCommand: Sendable, Hashable {
    /// Fails with `alreadyExists` when there is one with the id.
    ///
    /// - Parameter expiresIn: how long there is one; nil for what the collection says.
    case create(id: DocumentID, fields: JSONObject, expiresIn: Duration? = nil)
    /// Sets these fields and leaves the others; null removes one. Fails with `notFound`, as all that follow.
    case update(id: DocumentID, fields: JSONObject)
    /// Changes parts of fields: a merge patch (RFC 7396).
    case merge(id: DocumentID, fields: JSONObject)
    /// Adds to a number, exactly where both are whole; an absent one is 0.
    case increment(id: DocumentID, field: String, by: JSONValue)
    /// Does nothing when there is none.
    case delete(id: DocumentID)
    /// Adds a value to the array in a field, unless it is there.
    ///
    /// - Parameter in: the collection that must have a document with this id; nil when that is not looked at.
    case link(id: DocumentID, field: String, target: JSONValue, in: String? = nil)
    /// Takes a value out of the array in a field.
    case unlink(id: DocumentID, field: String, target: JSONValue)
    /// Says anew how long there is a document; nil for as long as nobody deletes it.
    case expire(id: DocumentID, expiresIn: Duration?)
    /// Changes nothing, and fails unless its condition holds.
    case check(id: DocumentID)

    /// The document.
    var id: DocumentID {
        switch self {
        case .create(let id, _, _), .update(let id, _), .merge(let id, _), .increment(let id, _, _), .delete(let id),
            .link(let id, _, _, _), .unlink(let id, _, _), .expire(let id, _), .check(let id):
            id
        }
    }

    /// What it is called in JSON.
    var name: String {
        switch self {
        case .create: "create"
        case .update: "update"
        case .merge: "merge"
        case .increment: "increment"
        case .delete: "delete"
        case .link: "link"
        case .unlink: "unlink"
        case .expire: "expire"
        case .check: "check"
        }
    }

    /// What its writer must be allowed.
    var action: CollectionAction {
        switch self {
        case .create: .create
        case .delete: .delete
        case .check: .read
        default: .update
        }
    }

    /// The document in another collection, or the same one, that must be there.
    var target: LinkTarget? {
        guard case .link(_, _, let target, let collection?) = self, let id = Document.id(target) else { return nil }
        return LinkTarget(collection: collection, id: id)
    }

    /// Whether it makes something else of a document when it is done twice.
    var adds: Bool {
        if case .increment = self { true } else { false }
    }

    /// About how many bytes of JSON it has.
    var byteCount: Int {
        switch self {
        case .create(let id, let fields, _), .update(let id, let fields), .merge(let id, let fields):
            id.byteCount + JSONValue.object(fields).byteCount + 48
        case .delete(let id), .check(let id), .expire(let id, _): id.byteCount + 48
        case .increment(let id, let field, let value), .unlink(let id, let field, let value):
            id.byteCount + field.utf8.count + value.byteCount + 48
        case .link(let id, let field, let target, let collection):
            id.byteCount + field.utf8.count + target.byteCount + (collection?.utf8.count ?? 0) + 48
        }
    }
}

/// A document that must be there for a link to it.
struct LinkTarget: Sendable, Hashable {
    let collection: String
    let id: DocumentID
}
