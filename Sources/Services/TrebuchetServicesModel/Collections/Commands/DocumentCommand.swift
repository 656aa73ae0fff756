/// A command for one document.
package enum DocumentCommand: Sendable, Hashable {
    /// Creates a document. Fails with `alreadyExists` when a document has the id.
    ///
    /// - Parameter expiresIn: the lifetime of the document; nil for that of the collection.
    case create(id: DocumentID, fields: JSONObject, expiresIn: Duration? = nil)
    /// Sets these fields and keeps the others; null removes one. Fails with `notFound`, as all the following.
    case update(id: DocumentID, fields: JSONObject)
    /// Changes parts of fields with a merge patch (RFC 7396).
    case merge(id: DocumentID, fields: JSONObject)
    /// Adds to a number, exactly for integers; a missing field is 0.
    case increment(id: DocumentID, field: String, by: JSONValue)
    /// Deletes the document; does nothing when it does not exist.
    case delete(id: DocumentID)
    /// Adds a value to the array in a field, unless it is there.
    ///
    /// - Parameter in: the collection that must have a document with this id; nil for no check.
    case link(id: DocumentID, field: String, target: JSONValue, in: String? = nil)
    /// Removes a value from the array in a field.
    case unlink(id: DocumentID, field: String, target: JSONValue)
    /// Sets the remaining lifetime of a document; nil removes the limit.
    case expire(id: DocumentID, expiresIn: Duration?)
    /// Changes nothing, and fails unless its condition holds.
    case check(id: DocumentID)

    /// The id of the document.
    package var id: DocumentID {
        switch self {
        case .create(let id, _, _), .update(let id, _), .merge(let id, _), .increment(let id, _, _), .delete(let id),
            .link(let id, _, _, _), .unlink(let id, _, _), .expire(let id, _), .check(let id):
            id
        }
    }

    /// The name in JSON.
    package var name: String {
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

    /// The action for which the caller must be authorized.
    package var action: CollectionAction {
        switch self {
        case .create: .create
        case .delete: .delete
        case .check: .read
        default: .update
        }
    }

    /// The document, in this or another collection, that must exist.
    package var target: LinkTarget? {
        guard case .link(_, _, let target, let collection?) = self, let id = Document.id(target) else { return nil }
        return LinkTarget(collection: collection, id: id)
    }

    /// True for a command that is not idempotent.
    package var adds: Bool {
        if case .increment = self { true } else { false }
    }

    /// The approximate number of bytes of its JSON.
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

/// A document that must exist for a link to it.
package struct LinkTarget: Sendable, Hashable {
    package let collection: String
    package let id: DocumentID
}

/// An action on a document.
public enum CollectionAction: String, Codable, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// The names that rules and errors use. Links, increments and expiries are updates.
    case read, create, update, delete

    public var description: String { rawValue }
}
