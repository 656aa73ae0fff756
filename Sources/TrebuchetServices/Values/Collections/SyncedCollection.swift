public import SharedState

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What the documents of a collection are.
public typealias EntityIdentifiable = Codable & Equatable & Identifiable & Sendable

/// Documents of a collection as an app sees them: those of the server, with the app's own writes that are on their way.
///
///     @Shared(.trebuchetCollection(Schema.todos)) var todos: SyncedCollection<Todo>
///
///     $todos.create(Todo(title: "Milk"))
///     $todos.update(id) { $0.isDone = true }
///
/// A write shows at once. Without a connection it waits; when the server refuses it, it is taken back and reported.
public struct SyncedCollection<Element: EntityIdentifiable>: Sendable
where Element.ID: Codable & Sendable {
    /// In the order of the query.
    public internal(set) var items: IdentifiedArrayOf<Element> = []
    /// How many documents match at the server, those that are not among the items too; nil unless the query counts.
    public internal(set) var count: Int?
    /// Whether more documents match behind the items: the query has a limit, or all together are more than one result has room for
    /// (`CollectionLimits.resultBytes` at the server).
    public internal(set) var hasMore = false
    /// There is nothing to show yet: nothing has come from the server, and nothing was kept of before.
    public internal(set) var isLoading = true
    /// The items may be out of date: there is no connection, or they were kept from before and the server has not said more yet.
    public internal(set) var isStale = false
    /// Writes are on their way, or wait for a connection.
    public internal(set) var isSyncing = false
    /// When the items were last up to date, also before a restart; nil for not yet.
    public internal(set) var lastSyncedAt: Date?
    /// How writing goes: pending while any write is.
    public internal(set) var writeStatus = OperationStatus.idle
    /// What the last write failed with, until one succeeds or `reset()`; a ``LateRefusal`` for one that was made before a restart.
    public internal(set) var writeError: (any Error)?
    /// Why there is nothing from the server, or not all of it.
    public internal(set) var readError: (any Error)?
    /// Documents of the result that are no elements, and why; ``readError`` names the first of them.
    public internal(set) var unreadable: [UnreadableDocument] = []
    /// What stands behind the items, and what an app cannot read.
    var shown: [DocumentID: ShownDocument<Element>] = [:]
    /// The query finds all documents.
    var isOfAll = false
    /// Where writes go; nil without a backend.
    var link: CollectionLink?

    init(link: CollectionLink?) {
        self.link = link
        guard link == nil else { return }
        isLoading = false
        readError = CollectionError.noBackend
    }

    /// What went wrong with the last write, or else with reading.
    public var error: (any Error)? { writeError ?? readError }

    /// Whether the last write failed, or reading does.
    public var isError: Bool { error != nil }

    /// Why a document that is not among the items cannot be updated here.
    func missing(_ id: DocumentID) -> CollectionError {
        if isLoading { return .notLoaded(id: id.text) }
        if let strange = unreadable.first(where: { DocumentID($0.id) == id }) { return strange.error }
        let isKnown = isOfAll && !hasMore && !isStale && readError == nil
        return isKnown ? .notFound(id: id.text) : .notAmongItems(id: id.text)
    }

    /// What the server knows of an item: when it was created and changed, by whom, at which revision, and when it expires. Of one
    /// with writes that wait, what this client expects.
    public func document(_ id: Element.ID) -> Document? {
        (try? CollectionCommands.id(encoding: items[id: id]?.id ?? id)).flatMap { shown[$0]?.document }
    }
}

/// A document, and what an app makes of it.
struct ShownDocument<Element: Decodable & Sendable>: Sendable {
    let document: Document
    /// Nil for one that is no such element.
    let element: Element?
    /// Why there is none.
    let misfit: String?

    init(_ document: Document) {
        self.document = document
        element = try? document.value.decode(Element.self)
        misfit = element == nil ? document.value.misfit(Element.self) : nil
    }

    var unreadable: UnreadableDocument? { misfit.map { UnreadableDocument(id: document.id.text, reason: $0) } }
}

extension SyncedCollection: Equatable {
    /// Errors are equal when they read the same.
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
    /// What is shown, and not the connection that it comes over.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "items": items, "isLoading": isLoading, "isStale": isStale, "isSyncing": isSyncing,
                "error": error.map { "\($0)" } as Any,
            ])
    }
}
