internal import TrebuchetWire

// trebuchet: TypeScript = { id: string; fields: { [name: string]: unknown }; creator?: string; created: number; revision: number; createdAt: number; updatedAt: number; expiresAt?: number }
/// A document of a collection.
public struct Document: Codable, Sendable, Identifiable {
    /// Shared by the copies of a document, which are in several tables and results.
    private var contents: DocumentContents

    /// The identifier, chosen by the creator and unique in the collection.
    public var id: DocumentID { contents.id }
    /// The content; null is the same as a missing field.
    public internal(set) var fields: JSONObject {
        get { contents.fields }
        set { change { $0.fields = newValue } }
    }
    /// The id of the principal that created it; nil for a caller that was not signed in.
    public var creator: String? { contents.creator }
    /// The number of the write that created it. Queries without an order sort by it.
    public var created: Int { contents.created }
    /// The number of the last write to it. Each collection counts its writes.
    public internal(set) var revision: Int {
        get { contents.revision }
        set { change { $0.revision = newValue } }
    }
    /// The time of its creation: milliseconds since 1970 by the server's clock, which never goes backwards within a collection.
    /// 0 for a document from a server version that did not store it.
    public var createdAt: Int { contents.createdAt }
    /// The time of the last write, as ``createdAt``.
    public internal(set) var updatedAt: Int {
        get { contents.updatedAt }
        set { change { $0.updatedAt = newValue } }
    }
    /// The time from which it no longer exists, as ``createdAt``; nil for no limit.
    public internal(set) var expiresAt: Int? {
        get { contents.expiresAt }
        set { change { $0.expiresAt = newValue } }
    }
    /// Distinguishes the creator's host from others within the collection. It is stored, and never sent.
    var origin: UInt32? {
        get { contents.origin }
        set { change { $0.origin = newValue } }
    }

    private mutating func change(_ body: (DocumentContents) -> Void) {
        if !isKnownUniquelyReferenced(&contents) { contents = DocumentContents(contents) }
        body(contents)
    }

    private enum CodingKeys: CodingKey {
        case id, fields, creator, created, revision, createdAt, updatedAt, expiresAt
    }

    /// Creates a document for tests of rules. Fields that are null are omitted.
    public init(
        id: DocumentID, fields: JSONObject, creator: String? = nil, created: Int = 0, revision: Int = 0,
        createdAt: Int = 0, updatedAt: Int = 0, expiresAt: Int? = nil
    ) {
        contents = DocumentContents(
            id: id, fields: fields.withoutNulls, creator: creator, created: created, revision: revision,
            createdAt: createdAt, updatedAt: updatedAt, expiresAt: expiresAt)
    }

    public init(from decoder: any Decoder) throws {
        if let direct = try Self.readDirectly(from: decoder) {
            self = direct
            return
        }
        let members = try decoder.container(keyedBy: CodingKeys.self)
        contents = DocumentContents(
            id: try members.decode(DocumentID.self, forKey: .id),
            fields: try members.decode(JSONObject.self, forKey: .fields),
            creator: try members.decodeIfPresent(String.self, forKey: .creator),
            created: try members.decode(Int.self, forKey: .created),
            revision: try members.decode(Int.self, forKey: .revision),
            createdAt: try members.decodeIfPresent(Int.self, forKey: .createdAt) ?? 0,
            updatedAt: try members.decodeIfPresent(Int.self, forKey: .updatedAt) ?? 0,
            expiresAt: try members.decodeIfPresent(Int.self, forKey: .expiresAt))
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
    var byteCount: Int { JSONString.byteCount(id.text) + fields.byteCount }

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

extension Document: Hashable {
    public static func == (one: Self, other: Self) -> Bool {
        one.contents === other.contents || one.contents.isEqual(to: other.contents)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(revision)
        hasher.combine(fields)
    }
}

/// The contents of a document and its copies.
///
/// `@unchecked Sendable`: a document changes it only while it has the one reference to it, and otherwise copies it.
private final class DocumentContents: @unchecked Sendable {
    let id: DocumentID
    var fields: JSONObject
    let creator: String?
    let created: Int
    var revision: Int
    let createdAt: Int
    var updatedAt: Int
    var expiresAt: Int?
    var origin: UInt32?

    init(
        id: DocumentID, fields: JSONObject, creator: String?, created: Int, revision: Int,
        createdAt: Int,
        updatedAt: Int, expiresAt: Int?
    ) {
        self.id = id
        self.fields = fields
        self.creator = creator
        self.created = created
        self.revision = revision
        self.createdAt = createdAt
        self.updatedAt = updatedAt
        self.expiresAt = expiresAt
    }

    convenience init(_ other: DocumentContents) {
        self.init(
            id: other.id, fields: other.fields, creator: other.creator, created: other.created,
            revision: other.revision, createdAt: other.createdAt, updatedAt: other.updatedAt,
            expiresAt: other.expiresAt)
        origin = other.origin
    }

    func isEqual(to other: DocumentContents) -> Bool {
        id == other.id && revision == other.revision && updatedAt == other.updatedAt
            && created == other.created
            && createdAt == other.createdAt && expiresAt == other.expiresAt && origin == other.origin
            && creator == other.creator && fields == other.fields
    }
}
