public import SharedState

/// The key of a `SyncedCollection`; see ``SharedState/SharedReaderKey/trebuchetCollection(_:where:order:limit:after:counts:)``.
public struct SyncedCollectionKey<Element: Codable & Identifiable & Equatable & Sendable>: SharedKey
where Element.ID: Codable & Sendable {
    /// The value of a wrapper with this key.
    public typealias Value = SyncedCollection<Element>

    /// Identifies the collection, the query and the server.
    public struct ID: Hashable, Sendable {
        let collection: String
        let query: CollectionQuery
        let backend: ObjectIdentifier?
    }

    private let collection: String
    private let query: CollectionQuery
    private let backend: TrebuchetBackend?

    init(_ collection: String, _ query: CollectionQuery) {
        self.collection = collection
        self.query = query.canonical
        backend = TrebuchetBackend.current
    }

    /// The identity: wrappers of one query at one backend share their documents. The order of conditions does not matter.
    public var id: ID { ID(collection: collection, query: query, backend: backend.map { ObjectIdentifier($0) }) }

    /// The value before the first result.
    var initialValue: Value { SyncedCollection(link: link) }

    private var link: ClientCollection? { backend.map { $0.collections.collection(collection, $0.client) } }

    /// Returns an empty value; documents come through the subscription.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        guard case .userInitiated = context else { return continuation.resume(returning: initialValue) }
        // A load has nothing newer than the subscription. The subscription sends its value again, which takes precedence.
        link?.refreshObservers()
        continuation.resumeReturningInitialValue()
    }

    /// Opens the query at the server, and sends each change until the subscription ends. A stored result is sent first.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        guard let link else { return SharedSubscription() }
        let feed = SyncedCollectionObserver(query, link, subscriber)
        let number = link.addObserver(feed)
        feed.refresh()
        feed.start()
        return SharedSubscription {
            link.remove(number)
            feed.stop()
        }
    }

    /// Refuses the assignment with ``CollectionError/notAssignable`` and undoes it, because a whole value does not say which
    /// writes it means.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        link?.refreshObservers()
        continuation.resume(throwing: CollectionError.notAssignable)
    }
}

extension SharedReaderKey {
    /// Documents of a collection that match all conditions, in an order and up to a limit. They are kept up to date while a
    /// wrapper exists. See ``CollectionQuery``.
    ///
    /// - Parameters:
    ///   - after: the cursor of a page (``QueryPage/cursor``): only documents after it.
    ///   - counts: true to set ``SyncedCollection/count`` to the number of all matching documents.
    public static func trebuchetCollection<Element>(
        _ key: CollectionKey<Element>, where conditions: [QueryCondition] = [], order: [QueryOrder] = [],
        limit: Int? = nil, after: String? = nil, counts: Bool = false
    ) -> Self where Self == SyncedCollectionKey<Element>.Default {
        let query = CollectionQuery(where: conditions, order: order, limit: limit, after: after, includesCount: counts)
        let key = SyncedCollectionKey<Element>(key.name, query)
        return SyncedCollectionKey.Default[key, default: key.initialValue]
    }

    /// Another name for ``trebuchetCollection(_:where:order:limit:after:counts:)``.
    public static func instantSync<Element>(
        _ key: CollectionKey<Element>, where conditions: [QueryCondition] = [], order: [QueryOrder] = [],
        limit: Int? = nil, after: String? = nil, counts: Bool = false
    ) -> Self where Self == SyncedCollectionKey<Element>.Default {
        trebuchetCollection(key, where: conditions, order: order, limit: limit, after: after, counts: counts)
    }
}

extension Shared {
    /// Creates a value with all documents of a collection: `@Shared(Schema.todos) var todos: SyncedCollection<Todo>`.
    public init<Element>(_ key: CollectionKey<Element>, store: SharedStore = .current)
    where Value == SyncedCollection<Element> {
        self.init(.trebuchetCollection(key), store: store)
    }
}
