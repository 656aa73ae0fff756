package import Bytes
package import TrebuchetWire

/// The JSON of a document in one pass, for stored documents and for those that are sent alone.
extension Document: DirectJSON {
    /// The number of bytes of its JSON as an element of an array.
    var encodedByteCount: Int {
        let names = #"{"id":,"fields":,"created":,"revision":,"createdAt":,"updatedAt":},"#.utf8.count
        let numbers =
            Int64(created).digitCount + Int64(revision).digitCount + Int64(createdAt).digitCount
            + Int64(updatedAt).digitCount
        let creator = creator.map { #","creator":"#.utf8.count + JSONString.byteCount($0) } ?? 0
        let expiry = expiresAt.map { #","expiresAt":"#.utf8.count + Int64($0).digitCount } ?? 0
        return byteCount + names + numbers + creator + expiry
    }

    package init(json: inout JSONCursor, depth: Int) throws {
        var (id, fields) = (nil as DocumentID?, nil as JSONObject?)
        var creator: String?
        var (created, revision, createdAt, updatedAt) = (nil as Int?, nil as Int?, 0, 0)
        var expiresAt: Int?
        var origin: UInt32?
        try json.eachMember(depth: depth) { json, name in
            if name == "fields", json.peek() == UInt8(ascii: "{") {
                fields = try JSONObject(json: &json, depth: depth + 1)
                return
            }
            let value = try JSONValue(json: &json, depth: depth + 1)
            switch (name, value) {
            case ("id", .string(let text)): id = DocumentID(text)
            case ("creator", .string(let text)): creator = text
            case ("created", .integer(let number)): created = Int(number)
            case ("revision", .integer(let number)): revision = Int(number)
            case ("createdAt", .integer(let number)): createdAt = Int(number)
            case ("updatedAt", .integer(let number)): updatedAt = Int(number)
            case ("expiresAt", .integer(let number)): expiresAt = Int(number)
            case ("origin", .integer(let number)): origin = UInt32(exactly: number)
            case (_, .null): break
            case ("id", _), ("fields", _), ("creator", _), ("created", _), ("revision", _), ("createdAt", _),
                ("updatedAt", _), ("expiresAt", _):
                throw ValueError("the member '\(name)' of a document has another type")
            default: break
            }
        }
        guard let id, let fields, let created, let revision else {
            throw ValueError("a document requires an id, fields, and the numbers created and revision")
        }
        self.init(
            id: id, fields: fields, creator: creator, created: created, revision: revision, createdAt: createdAt,
            updatedAt: updatedAt, expiresAt: expiresAt)
        self.origin = origin
    }

    package func write(json: inout ByteBuffer) { write(json: &json, origin: nil) }

    /// Writes the stored form, which includes members that are never sent.
    func writeStored(to json: inout ByteBuffer) { write(json: &json, origin: origin) }

    private func write(json: inout ByteBuffer, origin: UInt32?) {
        json.append(#"{"id":"# as StaticString)
        JSONString.append(id.text, to: &json)
        json.append(#","fields":"# as StaticString)
        fields.write(json: &json)
        if let creator {
            json.append(#","creator":"# as StaticString)
            JSONString.append(creator, to: &json)
        }
        json.append(#","created":"# as StaticString)
        json.append(decimal: Int64(created))
        json.append(#","revision":"# as StaticString)
        json.append(decimal: Int64(revision))
        json.append(#","createdAt":"# as StaticString)
        json.append(decimal: Int64(createdAt))
        json.append(#","updatedAt":"# as StaticString)
        json.append(decimal: Int64(updatedAt))
        if let expiresAt {
            json.append(#","expiresAt":"# as StaticString)
            json.append(decimal: Int64(expiresAt))
        }
        if let origin {
            json.append(#","origin":"# as StaticString)
            json.append(decimal: Int64(origin))
        }
        json.append(UInt8(ascii: "}"))
    }
}
