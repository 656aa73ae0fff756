public import SharedState

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// The requirements on elements of a collection.
public typealias EntityIdentifiable = Codable & Equatable & Identifiable & Sendable

/// Documents of a collection at a client: those of the server, with the client's pending writes applied.
///
///     @Shared(.trebuchetCollection(Schema.todos)) var todos: SyncedCollection<Todo>
///
///     $todos.create(Todo(title: "Milk"))
///     $todos.update(id) { $0.isDone = true }
///
/// A write is shown at once. Without a connection it waits; when the server refuses it, it is undone and reported.
public struct SyncedCollection<Element: EntityIdentifiable>: Sendable
where Element.ID: Codable & Sendable {
    /// The elements, in the order of the query.
    public internal(set) var items: IdentifiedArrayOf<Element> = []
    /// The number of matching documents at the server, including those that are not among the items; nil unless the query
    /// counts.
    public internal(set) var count: Int?
    /// True when more documents match after the items: the query has a limit, or a result has no room for all of them
    /// (`CollectionLimits.resultBytes` at the server).
    public internal(set) var hasMore = false
    /// True before the first result, from the server or from a file.
    public internal(set) var isLoading = true
    /// True when the items may be out of date: there is no connection, or they are from a file and the server has not responded
    /// yet.
    public internal(set) var isStale = false
    /// True while writes are being sent, or wait for a connection.
    public internal(set) var isSyncing = false
    /// The time at which the items were last up to date, which may be before a restart; nil for never.
    public internal(set) var lastSyncedAt: Date?
    /// The status of writes: pending while any write is.
    public internal(set) var writeStatus = OperationStatus.idle
    /// The error of the last failed write, until a write succeeds or `reset()`; a ``WriteRejectedError`` for a write from before a
    /// restart.
    public internal(set) var writeError: (any Error)?
    /// The error because of which the result is missing or incomplete.
    public internal(set) var readError: (any Error)?
    /// Documents of the result that are not valid elements, with the reasons; ``readError`` names the first of them.
    public internal(set) var unreadable: [UnreadableDocument] = []
    /// The documents of the items, and of unreadable elements.
    var displayed: [DocumentID: DisplayedDocument<Element>] = [:]
    /// True when the query finds all documents.
    var isOfAll = false
    /// The destination of writes; nil without a backend.
    var link: ClientCollection?

    init(link: ClientCollection?) {
        self.link = link
        guard link == nil else { return }
        isLoading = false
        readError = CollectionError.noBackend
    }

    /// The error of the last write, or else that of reading.
    public var error: (any Error)? { writeError ?? readError }

    /// True when the last write or the reading has failed.
    public var isError: Bool { error != nil }

    /// Returns the error for an update of a document that is not among the items.
    func missing(_ id: DocumentID) -> CollectionError {
        if isLoading { return .notLoaded(id: id.text) }
        if let unreadableDocument = unreadable.first(where: { DocumentID($0.id) == id }) {
            return unreadableDocument.error
        }
        let isKnown = isOfAll && !hasMore && !isStale && readError == nil
        return isKnown ? .notFound(id: id.text) : .notAmongItems(id: id.text)
    }

    /// Returns the metadata of an item: its creation and last change with their principals, its revision, and its expiry. With
    /// pending writes it has the values that this client expects.
    public func document(_ id: Element.ID) -> Document? {
        (try? CollectionCommands.id(encoding: items[id: id]?.id ?? id)).flatMap { displayed[$0]?.document }
    }
}

/// A document with its decoded element.
struct DisplayedDocument<Element: Decodable & Sendable>: Sendable {
    let document: Document
    /// Nil for a document that does not decode.
    let element: Element?
    /// The decoding error.
    let mismatch: String?

    init(_ document: Document) {
        self.document = document
        element = try? document.value.decode(Element.self)
        mismatch = element == nil ? document.value.mismatch(Element.self) : nil
    }

    var unreadable: UnreadableDocument? { mismatch.map { UnreadableDocument(id: document.id.text, reason: $0) } }
}

extension SyncedCollection: Equatable {
    /// Errors are equal when their texts are.
    public static func == (one: Self, other: Self) -> Bool {
        one.items == other.items && one.count == other.count && one.hasMore == other.hasMore
            && one.isLoading == other.isLoading && one.isStale == other.isStale && one.isSyncing == other.isSyncing
            && one.lastSyncedAt == other.lastSyncedAt && one.writeStatus == other.writeStatus
            && one.unreadable == other.unreadable
            && isSame(one.writeError, other.writeError) && isSame(one.readError, other.readError)
    }

    private static func isSame(_ one: (any Error)?, _ other: (any Error)?) -> Bool {
        one.map { String(reflecting: $0) } == other.map { String(reflecting: $0) }
    }
}

extension SyncedCollection: CustomReflectable {
    /// Reflects the visible state, without the connection.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "items": items, "isLoading": isLoading, "isStale": isStale, "isSyncing": isSyncing,
                "error": error.map { "\($0)" } as Any,
            ])
    }
}
