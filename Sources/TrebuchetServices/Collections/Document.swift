/// A document as the server keeps it.
public struct Document: Codable, Sendable, Identifiable, Hashable {
    public let id: DocumentID
    /// What the app has put into it; null is the same as no field.
    public internal(set) var fields: JSONObject
    /// The id of the principal who created it; nil for somebody who was not signed in.
    public let creator: String?
    /// The number of the write that created it: the order of documents where a query asks for none.
    public let created: Int
    /// The number of the last write to it. Writes to a collection are counted.
    public internal(set) var revision: Int
    /// When it was created: milliseconds since 1970 by the server's clock, which never goes backwards within a collection. 0 for
    /// one that was stored by a server that did not note it.
    public let createdAt: Int
    /// When the last write to it was made, as ``createdAt``.
    public internal(set) var updatedAt: Int

    public init(
        id: DocumentID, fields: JSONObject, creator: String? = nil, created: Int = 0, revision: Int = 0,
        createdAt: Int = 0, updatedAt: Int = 0
    ) {
        self.id = id
        self.fields = fields.keeping { _, value in value != .null }
        self.creator = creator
        self.created = created
        self.revision = revision
        self.createdAt = createdAt
        self.updatedAt = updatedAt
    }

    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        id = try members.decode(DocumentID.self, forKey: .id)
        fields = try members.decode(JSONObject.self, forKey: .fields)
        creator = try members.decodeIfPresent(String.self, forKey: .creator)
        created = try members.decode(Int.self, forKey: .created)
        revision = try members.decode(Int.self, forKey: .revision)
        createdAt = try members.decodeIfPresent(Int.self, forKey: .createdAt) ?? 0
        updatedAt = try members.decodeIfPresent(Int.self, forKey: .updatedAt) ?? 0
    }

    /// The document's JSON.
    public var value: JSONValue { .object(fields) }

    /// About how many bytes of JSON it has.
    var byteCount: Int { id.byteCount + value.byteCount }

    /// Sets fields; null removes one. The others stay, so that of two writes to one field the last counts.
    mutating func set(_ changes: JSONObject) {
        for (name, value) in changes { fields[name] = value == .null ? nil : value }
    }

    /// Adds to the array in a field what it does not have, or takes it out. Other values in it stay, whoever put them there.
    mutating func setLink(_ isLinked: Bool, _ field: String, _ target: JSONValue) {
        var targets: [JSONValue] = []
        if case .array(let present)? = fields[field] { targets = present }
        targets.removeAll { $0 == target && !isLinked }
        if isLinked, !targets.contains(target) { targets.append(target) }
        fields[field] = .array(targets)
    }

    /// The id that a document has at the server: that of an element in JSON. Nil when it is no text and no whole number.
    static func id(_ value: JSONValue?) -> DocumentID? {
        switch value {
        case .string(let text): DocumentID(text)
        case .integer(let number): DocumentID(String(number))
        default: nil
        }
    }
}
