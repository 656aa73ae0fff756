/// Converts elements of an app to documents and writes.
enum CollectionCommands {
    /// Returns the fields of an element: the members of its JSON.
    static func fields(of element: some Encodable) throws -> JSONObject {
        guard case .object(let fields) = try JSONValue(encoding: element) else {
            throw CollectionError.invalidDocument("it does not encode to a JSON object")
        }
        return fields
    }

    /// Returns the changed fields; null for a removed one.
    static func changes(from before: some Encodable, to after: some Encodable) throws -> JSONObject {
        let (old, new) = (try fields(of: before), try fields(of: after))
        var changes = new.keeping { $1 != old[$0] }
        for name in old.names where new[name] == nil { changes[name] = .null }
        return changes
    }

    /// Returns a write that sets the fields. Nil when there are none and there is no condition. A condition is always sent,
    /// because the server may have another version of the document.
    static func update(_ id: DocumentID, _ fields: JSONObject, if condition: WriteCondition?) -> DocumentWrite? {
        guard fields.isEmpty else { return DocumentWrite(.update(id: id, fields: fields), if: condition) }
        return condition.map { DocumentWrite(.check(id: id), if: $0) }
    }

    static func id(encoding id: some Encodable) throws -> DocumentID { try self.id(try JSONValue(encoding: id)) }

    static func id(_ value: JSONValue?) throws -> DocumentID {
        guard let id = Document.id(value) else {
            throw CollectionError.invalidDocument("its member 'id' is not a string or an integer")
        }
        return id
    }
}
