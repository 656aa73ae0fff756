internal import TrebuchetWire

// trebuchet: as declared
/// A document as the server keeps it.
public struct Document: Codable, Sendable, Identifiable, Hashable {
    /// Given by who created it; no other document of the collection has it.
    public let id: DocumentID
    /// What the app has put into it; null is the same as no field.
    public internal(set) var fields: JSONObject { didSet { counted = CountedJSON() } }
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
    /// From when on it is not there any more, as ``createdAt``; nil for one that stays until somebody deletes it.
    public internal(set) var expiresAt: Int?
    /// Tells the host of who created it from others, within the collection. Stored, and sent to nobody.
    var origin: UInt32?
    /// Of its fields: who changes a large document often goes through it once each time.
    private var counted = CountedJSON()

    private enum CodingKeys: CodingKey {
        case id, fields, creator, created, revision, createdAt, updatedAt, expiresAt
    }

    /// A document as it stands; for tests of rules. Fields that are null are left out.
    public init(
        id: DocumentID, fields: JSONObject, creator: String? = nil, created: Int = 0, revision: Int = 0,
        createdAt: Int = 0, updatedAt: Int = 0, expiresAt: Int? = nil
    ) {
        self.id = id
        self.fields = fields.keeping { _, value in value != .null }
        self.creator = creator
        self.created = created
        self.revision = revision
        self.createdAt = createdAt
        self.updatedAt = updatedAt
        self.expiresAt = expiresAt
    }

    public init(from decoder: any Decoder) throws {
        if let direct = try Self.readDirectly(from: decoder) {
            self = direct
            return
        }
        let members = try decoder.container(keyedBy: CodingKeys.self)
        id = try members.decode(DocumentID.self, forKey: .id)
        fields = try members.decode(JSONObject.self, forKey: .fields)
        creator = try members.decodeIfPresent(String.self, forKey: .creator)
        created = try members.decode(Int.self, forKey: .created)
        revision = try members.decode(Int.self, forKey: .revision)
        createdAt = try members.decodeIfPresent(Int.self, forKey: .createdAt) ?? 0
        updatedAt = try members.decodeIfPresent(Int.self, forKey: .updatedAt) ?? 0
        expiresAt = try members.decodeIfPresent(Int.self, forKey: .expiresAt)
    }

    public func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(id, forKey: .id)
        try members.encode(fields, forKey: .fields)
        try members.encodeIfPresent(creator, forKey: .creator)
        try members.encode(created, forKey: .created)
        try members.encode(revision, forKey: .revision)
        try members.encode(createdAt, forKey: .createdAt)
        try members.encode(updatedAt, forKey: .updatedAt)
        try members.encodeIfPresent(expiresAt, forKey: .expiresAt)
    }

    /// The document's JSON.
    public var value: JSONValue { .object(fields) }

    /// Bytes of JSON of its id and its fields.
    var byteCount: Int { JSONString.byteCount(id.text) + (counted.counts?.bytes ?? value.byteCount) }

    /// How many arrays and objects stand in each other.
    var depth: Int { counted.counts?.depth ?? value.depth }

    /// Keeps what `byteCount` and `depth` are until the fields change.
    mutating func count() { if counted.counts == nil { counted.counts = (value.byteCount, value.depth) } }

    func isExpired(at time: Int) -> Bool { expiresAt.map { $0 <= time } ?? false }

    /// The id that a document has at the server: that of an element in JSON. Nil when it is no text and no whole number.
    static func id(_ value: JSONValue?) -> DocumentID? {
        switch value {
        case .string(let text): DocumentID(text)
        case .integer(let number): DocumentID(String(number))
        default: nil
        }
    }
}

/// How large and deep some JSON is, once that was counted. It says nothing of its own: all are equal.
private struct CountedJSON: Sendable, Hashable {
    var counts: (bytes: Int, depth: Int)?

    static func == (one: Self, other: Self) -> Bool { true }

    func hash(into hasher: inout Hasher) {}
}
