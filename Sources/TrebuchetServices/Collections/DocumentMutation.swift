/// What is to be done with one document.
public enum DocumentCommand: Codable, Sendable, Hashable {
    /// Fails with `alreadyExists` when there is one with the id.
    case create(id: DocumentID, fields: JSONObject)
    /// Sets these fields and leaves the others; null removes one. Fails with `notFound`.
    case update(id: DocumentID, fields: JSONObject)
    /// Does nothing when there is none.
    case delete(id: DocumentID)
    /// Adds a value to the array in a field, unless it is there. Fails with `notFound`. Whether there is a document that the
    /// value names is not looked at.
    case link(id: DocumentID, field: String, target: JSONValue)
    /// Takes a value out of the array in a field. Fails with `notFound`.
    case unlink(id: DocumentID, field: String, target: JSONValue)

    /// The document.
    public var id: DocumentID {
        switch self {
        case .create(let id, _), .update(let id, _), .delete(let id), .link(let id, _, _), .unlink(let id, _, _): id
        }
    }

    /// About how many bytes of JSON it has.
    var byteCount: Int {
        switch self {
        case .create(let id, let fields), .update(let id, let fields):
            id.byteCount + JSONValue.object(fields).byteCount + 32
        case .delete(let id): id.byteCount + 16
        case .link(let id, let field, let target), .unlink(let id, let field, let target):
            id.byteCount + field.utf8.count + target.byteCount + 32
        }
    }
}

extension DocumentCommand {
    /// Tells it from other commands of its client.
    var digest: UInt32 {
        var digest = StableDigest()
        switch self {
        case .create(let id, let fields): digest.combine(1, id, .object(fields))
        case .update(let id, let fields): digest.combine(2, id, .object(fields))
        case .delete(let id): digest.combine(3, id, .null)
        case .link(let id, let field, let target): digest.combine(4, id, .array([.string(field), target]))
        case .unlink(let id, let field, let target): digest.combine(5, id, .array([.string(field), target]))
        }
        return UInt32(truncatingIfNeeded: digest.value ^ digest.value >> 32)
    }
}

extension StableDigest {
    fileprivate mutating func combine(_ kind: UInt8, _ id: DocumentID, _ value: JSONValue) {
        combine(kind)
        combine(id.text)
        combine(value)
    }
}

/// A command with its number: a client counts its commands, so that one that is sent again is not done again.
struct DocumentMutation: Codable, Sendable, Hashable {
    let number: Int
    let command: DocumentCommand
}

/// What became of a mutation.
struct MutationOutcome: Codable, Sendable, Hashable {
    let number: Int
    /// The number of the write; of the last one when nothing was to be done.
    let revision: Int
    /// Why it was not done.
    var error: CollectionError?
}
