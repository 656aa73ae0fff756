/// How an app's elements become documents.
enum CollectionCommands {
    /// The fields of an element: the members of its JSON.
    static func fields(of element: some Encodable) throws -> JSONObject {
        guard case .object(let fields) = try JSONValue(encoding: element) else {
            throw CollectionError.invalidDocument("it is no object in JSON")
        }
        return fields
    }

    /// The fields that differ; null for one that is gone.
    static func changes(from before: some Encodable, to after: some Encodable) throws -> JSONObject {
        let (old, new) = (try fields(of: before), try fields(of: after))
        var changes = new.keeping { $1 != old[$0] }
        for name in old.names where new[name] == nil { changes[name] = .null }
        return changes
    }

    /// What sets these fields. Nil when there are none and nothing must hold: what must hold is the server's to say, which may have
    /// another document than the one that is shown here.
    static func update(_ id: DocumentID, _ fields: JSONObject, if condition: WriteCondition?) -> DocumentWrite? {
        guard fields.isEmpty else { return DocumentWrite(.update(id: id, fields: fields), if: condition) }
        return condition.map { DocumentWrite(.check(id: id), if: $0) }
    }

    static func id(encoding id: some Encodable) throws -> DocumentID { try self.id(try JSONValue(encoding: id)) }

    static func id(_ value: JSONValue?) throws -> DocumentID {
        guard let id = Document.id(value) else {
            throw CollectionError.invalidDocument("its member 'id' is no text and no whole number")
        }
        return id
    }
}
