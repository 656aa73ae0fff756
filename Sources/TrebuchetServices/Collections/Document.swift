internal import TrebuchetWire

// trebuchet: as declared
/// A document of a collection.
public struct Document: Codable, Sendable, Identifiable, Hashable {
    /// The identifier, chosen by the creator and unique in the collection.
    public let id: DocumentID
    /// The content; null is the same as a missing field.
    public internal(set) var fields: JSONObject { didSet { counted = CountedJSON() } }
    /// The id of the principal that created it; nil for a caller that was not signed in.
    public let creator: String?
    /// The number of the write that created it. Queries without an order sort by it.
    public let created: Int
    /// The number of the last write to it. Each collection counts its writes.
    public internal(set) var revision: Int
    /// The time of its creation: milliseconds since 1970 by the server's clock, which never goes backwards within a collection.
    /// 0 for a document from a server version that did not store it.
    public let createdAt: Int
    /// The time of the last write, as ``createdAt``.
    public internal(set) var updatedAt: Int
    /// The time from which it no longer exists, as ``createdAt``; nil for no limit.
    public internal(set) var expiresAt: Int?
    /// Distinguishes the creator's host from others within the collection. It is stored, and never sent.
    var origin: UInt32?
    /// Caches the size of the fields, because repeated changes of a large document would count it each time.
    private var counted = CountedJSON()

    private enum CodingKeys: CodingKey {
        case id, fields, creator, created, revision, createdAt, updatedAt, expiresAt
    }

    /// Creates a document for tests of rules. Fields that are null are omitted.
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

    /// The JSON of the fields.
    public var value: JSONValue { .object(fields) }

    /// The number of bytes of JSON of its id and its fields.
    var byteCount: Int { JSONString.byteCount(id.text) + (counted.counts?.bytes ?? value.byteCount) }

    /// The maximum nesting depth of arrays and objects.
    var depth: Int { counted.counts?.depth ?? value.depth }

    /// Caches `byteCount` and `depth` until the fields change.
    mutating func count() { if counted.counts == nil { counted.counts = (value.byteCount, value.depth) } }

    func isExpired(at time: Int) -> Bool { expiresAt.map { $0 <= time } ?? false }

    /// Returns the document id for an element's id in JSON; nil when that is no string and no integer.
    static func id(_ value: JSONValue?) -> DocumentID? {
        switch value {
        case .string(let text): DocumentID(text)
        case .integer(let number): DocumentID(String(number))
        default: nil
        }
    }
}

/// The cached size and depth of JSON. All values are equal, because they follow from the JSON.
private struct CountedJSON: Sendable, Hashable {
    var counts: (bytes: Int, depth: Int)?

    static func == (one: Self, other: Self) -> Bool { true }

    func hash(into hasher: inout Hasher) {}
}
