package import Bytes
package import TrebuchetWire

/// The JSON of a document in one pass, for stored documents and for those that are sent alone.
extension Document: DirectJSON {
    /// The number of bytes of its JSON as an element of an array.
    package var encodedByteCount: Int {
        let names = #"{"id":,"fields":,"created":,"revision":,"createdAt":,"updatedAt":},"#.utf8.count
        return withMembers { members in
            let numbers =
                Int64(members.created).digitCount + Int64(members.revision).digitCount
                + Int64(members.createdAt).digitCount + Int64(members.updatedAt).digitCount
            let creator = members.creator.map { #","creator":"#.utf8.count + JSONString.byteCount($0) } ?? 0
            let expiry = members.expiresAt.map { #","expiresAt":"#.utf8.count + Int64($0).digitCount } ?? 0
            return JSONString.byteCount(members.id) + fields.byteCount + names + numbers + creator + expiry
        }
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

    package func write(json: inout ByteBuffer) { write(json: &json, withOrigin: false) }

    /// Writes the stored form, which includes members that are never sent. `init(stored:_:)` reads it.
    package func writeStored(to json: inout ByteBuffer) { write(json: &json, withOrigin: true) }

    private func write(json: inout ByteBuffer, withOrigin: Bool) {
        withMembers { members in
            json.append(#"{"id":"# as StaticString)
            JSONString.append(members.id, to: &json)
            json.append(#","fields":"# as StaticString)
            fields.write(json: &json)
            if let creator = members.creator {
                json.append(#","creator":"# as StaticString)
                JSONString.append(creator, to: &json)
            }
            json.append(#","created":"# as StaticString)
            json.append(decimal: Int64(members.created))
            json.append(#","revision":"# as StaticString)
            json.append(decimal: Int64(members.revision))
            json.append(#","createdAt":"# as StaticString)
            json.append(decimal: Int64(members.createdAt))
            json.append(#","updatedAt":"# as StaticString)
            json.append(decimal: Int64(members.updatedAt))
            if let expiry = members.expiresAt {
                json.append(#","expiresAt":"# as StaticString)
                json.append(decimal: Int64(expiry))
            }
            if withOrigin, let origin = members.origin {
                json.append(#","origin":"# as StaticString)
                json.append(decimal: Int64(origin))
            }
            json.append(UInt8(ascii: "}"))
        }
    }
}

extension JSONString {
    /// Returns the size of UTF-8 text as a string in JSON, with its quotes and escapes.
    package static func byteCount(_ text: UnsafeRawBufferPointer) -> Int {
        text.reduce(2) { count, byte in
            switch byte {
            case 0x22, 0x5C, 0x0A, 0x0D, 0x09: count + 2
            case 0..<0x20: count + 6
            default: count + 1
            }
        }
    }
}
