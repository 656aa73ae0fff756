import TrebuchetServices

/// One line of an import: a line of an export, or a hand-written subset of its members.
struct ImportedDocument {
    /// The error of an invalid member, with the required value.
    struct InvalidMember: Error, CustomStringConvertible {
        let description: String
        /// Whether the line looks like a line of an export.
        let isOfExport: Bool
    }

    private static let known = [
        "id", "fields", "creator", "created", "revision", "createdAt", "updatedAt", "expiresAt",
    ]

    private let line: JSONObject
    private let collection: String?

    /// - Parameter collection: overrides the collection that the line names.
    init(_ value: JSONValue, _ collection: String?) throws(InvalidMember) {
        guard case .object(let line) = value, line["document"] != nil || line["collection"] != nil else {
            throw InvalidMember(
                description: "not an exported document, {\"collection\":…,\"document\":{…}}", isOfExport: false)
        }
        self.line = line
        self.collection = collection
    }

    func exported() throws(InvalidMember) -> ExportedDocument {
        let name: String
        switch (collection, line["collection"]) {
        case (let collection?, _): name = collection
        case (nil, .string(let text)?): name = text
        default: throw invalidMember("collection", "must be a collection name; or pass --into COLLECTION")
        }
        guard case .object(let members)? = line["document"] else {
            throw invalidMember("document", "must be an object")
        }
        for name in members.names.sorted() where !Self.known.contains(name) {
            let hint = NearestMatch.find(name, in: Self.known).map { "did you mean '\($0)'?" }
            throw invalidMember(
                "document.\(name)", "is an unknown member; \(hint ?? "put application data into 'fields'")")
        }
        guard let id = members["id"].flatMap(AnyDocument.id) else {
            throw invalidMember("document.id", "must be a string or an integer")
        }
        guard case .object(var fields)? = members["fields"] else {
            throw invalidMember("document.fields", "must be an object")
        }
        // Readers see the id among the fields; a hand-written line may omit it there.
        if fields["id"] == nil { fields["id"] = members["id"] }
        guard let inFields = fields["id"].flatMap(AnyDocument.id), inFields == id else {
            throw invalidMember("document.fields.id", "must be equal to document.id, or absent")
        }
        return ExportedDocument(
            collection: name,
            document: Document(
                id: DocumentID(id), fields: fields, creator: try text(members, "creator"),
                created: try number(members, "created") ?? 0, revision: try number(members, "revision") ?? 0,
                createdAt: try number(members, "createdAt") ?? 0, updatedAt: try number(members, "updatedAt") ?? 0,
                expiresAt: try number(members, "expiresAt")))
    }

    private func text(_ members: JSONObject, _ name: String) throws(InvalidMember) -> String? {
        switch members[name] {
        case nil, .null?: return nil
        case .string(let text)?: return text
        default: throw invalidMember("document.\(name)", "must be a string: the id of an account")
        }
    }

    private func number(_ members: JSONObject, _ name: String) throws(InvalidMember) -> Int? {
        switch members[name] {
        case nil, .null?: return nil
        case .integer(let number)? where number >= 0 && number < 1 << 53: return Int(number)
        default: throw invalidMember("document.\(name)", "must be an integer of at least 0")
        }
    }

    private func invalidMember(_ member: String, _ problem: String) -> InvalidMember {
        InvalidMember(description: "\(member): \(problem)", isOfExport: true)
    }
}
