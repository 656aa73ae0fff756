internal import Trebuchet
internal import TrebuchetWire

// trebuchet: as declared
/// What a query finds: the state that clients observe.
struct QueryResult: DeltaRecord, Equatable {
    // trebuchet: TypeScript = number
    /// Of the last write that changed something in it. That it shows later ones too, its server says with a ticket and with the
    /// answers of writes.
    @DeltaValue var revision = 0
    /// How many documents match, those that are not shown too; nil unless the query counts.
    @DeltaValue var count: Int? = nil
    /// Whether more documents match behind those that are shown.
    @DeltaValue var hasMore = false
    var documents = KeyedCollection<Document>()

    static let deltaMembers: [DeltaMember<QueryResult>] = [
        DeltaMember("revision", \._revision), DeltaMember("count", \._count), DeltaMember("hasMore", \._hasMore),
        DeltaMember("documents", \.documents),
    ]
}

extension QueryResult {
    private enum CodingKeys: String, CodingKey { case revision, count, hasMore, documents }

    /// Of a server that does not count, too.
    init(from decoder: any Decoder) throws {
        if let direct = try Self.readDirectly(from: decoder) {
            self = direct
            return
        }
        let members = try decoder.container(keyedBy: CodingKeys.self)
        revision = try members.decode(Int.self, forKey: .revision)
        count = try members.decodeIfPresent(Int.self, forKey: .count)
        hasMore = try members.decodeIfPresent(Bool.self, forKey: .hasMore) ?? false
        documents = try members.decode(KeyedCollection<Document>.self, forKey: .documents)
    }

    func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(revision, forKey: .revision)
        // There always or never: a query counts or does not.
        try members.encodeIfPresent(count, forKey: .count)
        try members.encode(hasMore, forKey: .hasMore)
        try members.encode(documents, forKey: .documents)
    }
}

/// How a result changes with the documents.
struct ResultChange: Sendable, Equatable {
    enum Step: Sendable, Equatable {
        case remove(Document.ID)
        case insert(Document, at: Int)
        /// And stands at this place then.
        case update(Document, at: Int)
    }

    var steps: [Step] = []
    var count: Int?
    var hasMore: Bool
}

extension QueryResult {
    mutating func apply(_ change: ResultChange, revision: Int) {
        for step in change.steps {
            switch step {
            case .remove(let id): documents.remove(id: id)
            case .insert(let document, let place): documents.insert(document, at: place)
            case .update(let document, let place):
                documents.update(id: document.id) { $0 = document }
                documents.move(id: document.id, to: place)
            }
        }
        if count != change.count { count = change.count }
        if hasMore != change.hasMore { hasMore = change.hasMore }
        self.revision = revision
    }
}

/// Where the result of a query is observed, and what it shows.
struct QueryTicket: Codable, Sendable, Hashable {
    /// The name of the actor: a secret of those who may read it.
    let view: String
    /// What the answers of writes call it.
    var number: Int?
    /// The revision of its result, when the query was opened.
    var shown: Int?
    /// The last write of the collection then: that result shows all up to it.
    var revision: Int?
}

/// A change of one document; nil for one that is not there after.
struct DocumentChange: Sendable, Equatable {
    let id: Document.ID
    let after: Document?
}
