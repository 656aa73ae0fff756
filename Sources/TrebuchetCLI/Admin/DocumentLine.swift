import TrebuchetServices

/// A line of an import: what an export has written, or as much of it as somebody has who writes it by hand.
struct DocumentLine {
    /// Which member is wrong, and what it must be.
    struct Wrong: Error, CustomStringConvertible {
        let description: String
        /// Whether the line was meant as one of an export.
        let isOfExport: Bool
    }

    private static let known = [
        "id", "fields", "creator", "created", "revision", "createdAt", "updatedAt", "expiresAt",
    ]

    private let line: JSONObject
    private let collection: String?

    /// - Parameter collection: where the document goes, whatever the line says.
    init(_ value: JSONValue, _ collection: String?) throws(Wrong) {
        guard case .object(let line) = value, line["document"] != nil || line["collection"] != nil else {
            throw Wrong(
                description: "this is no exported document, {\"collection\":…,\"document\":{…}}", isOfExport: false)
        }
        self.line = line
        self.collection = collection
    }

    func exported() throws(Wrong) -> ExportedDocument {
        let name: String
        switch (collection, line["collection"]) {
        case (let collection?, _): name = collection
        case (nil, .string(let text)?): name = text
        default: throw wrong("collection", "must be a name; or give --into COLLECTION")
        }
        guard case .object(let members)? = line["document"] else { throw wrong("document", "must be an object") }
        for name in members.names.sorted() where !Self.known.contains(name) {
            let hint = NearestMatch.find(name, in: Self.known).map { "did you mean '\($0)'?" }
            throw wrong("document.\(name)", "is no member; \(hint ?? "what the app puts into it stands in 'fields'")")
        }
        guard let id = members["id"].flatMap(AnyDocument.id) else {
            throw wrong("document.id", "must be a text or a whole number")
        }
        guard case .object(var fields)? = members["fields"] else { throw wrong("document.fields", "must be an object") }
        // An id in the fields is part of what readers see; who writes a line by hand need not say it twice.
        if fields["id"] == nil { fields["id"] = members["id"] }
        guard let inFields = fields["id"].flatMap(AnyDocument.id), inFields == id else {
            throw wrong("document.fields.id", "must be the same as document.id, or not be there")
        }
        return ExportedDocument(
            collection: name,
            document: Document(
                id: DocumentID(id), fields: fields, creator: try text(members, "creator"),
                created: try number(members, "created") ?? 0, revision: try number(members, "revision") ?? 0,
                createdAt: try number(members, "createdAt") ?? 0, updatedAt: try number(members, "updatedAt") ?? 0,
                expiresAt: try number(members, "expiresAt")))
    }

    private func text(_ members: JSONObject, _ name: String) throws(Wrong) -> String? {
        switch members[name] {
        case nil, .null?: return nil
        case .string(let text)?: return text
        default: throw wrong("document.\(name)", "must be a text: the id of an account")
        }
    }

    private func number(_ members: JSONObject, _ name: String) throws(Wrong) -> Int? {
        switch members[name] {
        case nil, .null?: return nil
        case .integer(let number)? where number >= 0 && number < 1 << 53: return Int(number)
        default: throw wrong("document.\(name)", "must be a whole number from 0 on")
        }
    }

    private func wrong(_ member: String, _ problem: String) -> Wrong {
        Wrong(description: "\(member): \(problem)", isOfExport: true)
    }
}
