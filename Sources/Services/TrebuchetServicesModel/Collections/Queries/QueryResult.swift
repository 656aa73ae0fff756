package import Deltas
internal import TrebuchetWire

// trebuchet: as declared
/// The result of a query: the state that clients observe.
package struct QueryResult: DeltaRecord, Equatable {
    // trebuchet: TypeScript = number
    /// The number of the last write that changed the result. Tickets and responses to writes say up to which later write the
    /// result is complete.
    @DeltaValue package var revision = 0
    /// The number of matching documents, including those that are not shown; nil unless the query counts.
    @DeltaValue package var count: Int? = nil
    /// True when more documents match after the shown ones.
    @DeltaValue package var hasMore = false
    package var documents = KeyedCollection<Document>()

    package init(
        revision: Int = 0, count: Int? = nil, hasMore: Bool = false,
        documents: KeyedCollection<Document> = KeyedCollection<Document>()
    ) {
        _revision = DeltaValue(wrappedValue: revision)
        _count = DeltaValue(wrappedValue: count)
        _hasMore = DeltaValue(wrappedValue: hasMore)
        self.documents = documents
    }

    package static let deltaMembers: [DeltaMember<QueryResult>] = [
        DeltaMember("revision", \._revision), DeltaMember("count", \._count), DeltaMember("hasMore", \._hasMore),
        DeltaMember("documents", \.documents),
    ]
}

extension QueryResult {
    private enum CodingKeys: String, CodingKey { case revision, count, hasMore, documents }

    /// Also decodes results of servers that do not count.
    package init(from decoder: any Decoder) throws {
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

    package func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(revision, forKey: .revision)
        // Either always present or never: a query counts or does not.
        try members.encodeIfPresent(count, forKey: .count)
        try members.encode(hasMore, forKey: .hasMore)
        try members.encode(documents, forKey: .documents)
    }
}

/// The change of a result by changed documents.
package struct ResultChange: Sendable, Equatable {
    package enum Step: Sendable, Equatable {
        case remove(Document.ID)
        case insert(Document, at: Int)
        /// Replaces a document, which is at this index afterwards.
        case update(Document, at: Int)
    }

    package var steps: [Step] = []
    package var count: Int?
    package var hasMore: Bool

    package init(steps: [Step] = [], count: Int? = nil, hasMore: Bool) {
        self.steps = steps
        self.count = count
        self.hasMore = hasMore
    }
}

extension QueryResult {
    package mutating func apply(_ change: ResultChange, revision: Int) {
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

/// The response to opening a query: the actor with its result, and the state of that result.
package struct QueryTicket: Codable, Sendable, Hashable {
    /// The name of the actor; a secret of the clients that may read it.
    package let view: String
    /// The number of the query in responses to writes.
    package var number: Int?
    /// The revision of the result when the query was opened.
    package var shown: Int?
    /// The last write of the collection at that time; the result is complete up to it.
    package var revision: Int?

    package init(view: String, number: Int? = nil, shown: Int? = nil, revision: Int? = nil) {
        self.view = view
        self.number = number
        self.shown = shown
        self.revision = revision
    }
}

/// A change of one document; nil for a deleted one.
package struct DocumentChange: Sendable, Equatable {
    package let id: Document.ID
    package let after: Document?

    package init(id: Document.ID, after: Document?) {
        self.id = id
        self.after = after
    }
}
