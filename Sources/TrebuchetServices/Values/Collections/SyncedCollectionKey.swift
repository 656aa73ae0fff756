public import SharedState

/// Where a `SyncedCollection` comes from; see ``SharedState/SharedReaderKey/trebuchetCollection(_:where:order:limit:after:counts:)``.
public struct SyncedCollectionKey<Element: Codable & Identifiable & Equatable & Sendable>: SharedKey
where Element.ID: Codable & Sendable {
    /// What a wrapper of this key holds.
    public typealias Value = SyncedCollection<Element>

    /// The collection, the query, and the server they are at.
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

    /// Wrappers of one query at one backend share their documents; conditions may come in another order.
    public var id: ID { ID(collection: collection, query: query, backend: backend.map { ObjectIdentifier($0) }) }

    /// As it is before anything has come.
    var initialValue: Value { SyncedCollection(link: link) }

    private var link: CollectionLink? { backend.map { $0.collections.link(to: collection, $0.client) } }

    /// Begins with nothing; documents come through the subscription.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        guard case .userInitiated = context else { return continuation.resume(returning: initialValue) }
        // Nothing is newer than what the subscription has shown: it shows that again, and what it shows goes before.
        link?.refreshFeeds()
        continuation.resumeReturningInitialValue()
    }

    /// Opens the query at the server, and shows each change until the subscription ends. What was kept from before is shown
    /// first.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        guard let link else { return SharedSubscription() }
        let feed = ElementFeed(query, link, subscriber)
        let number = link.add(feed)
        feed.refresh()
        feed.start()
        return SharedSubscription {
            link.remove(number)
            feed.stop()
        }
    }

    /// Refused with ``CollectionError/notAssignable``, and undone: a whole value does not say what was meant by it.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        link?.refreshFeeds()
        continuation.resume(throwing: CollectionError.notAssignable)
    }
}

extension SharedReaderKey {
    /// The documents of a collection for which all conditions hold, in an order, and at most so many. Kept up to date while
    /// a wrapper is there. See ``CollectionQuery``.
    ///
    /// - Parameters:
    ///   - after: the cursor of a page (``QueryPage/cursor``): documents behind it alone.
    ///   - counts: whether ``SyncedCollection/count`` says how many match in all.
    public static func trebuchetCollection<Element>(
        _ key: CollectionKey<Element>, where conditions: [QueryCondition] = [], order: [QueryOrder] = [],
        limit: Int? = nil, after: String? = nil, counts: Bool = false
    ) -> Self where Self == SyncedCollectionKey<Element>.Default {
        let query = CollectionQuery(where: conditions, order: order, limit: limit, after: after, counts: counts)
        let key = SyncedCollectionKey<Element>(key.name, query)
        return SyncedCollectionKey.Default[key, default: key.initialValue]
    }

    /// Another name of ``trebuchetCollection(_:where:order:limit:after:counts:)``.
    public static func instantSync<Element>(
        _ key: CollectionKey<Element>, where conditions: [QueryCondition] = [], order: [QueryOrder] = [],
        limit: Int? = nil, after: String? = nil, counts: Bool = false
    ) -> Self where Self == SyncedCollectionKey<Element>.Default {
        trebuchetCollection(key, where: conditions, order: order, limit: limit, after: after, counts: counts)
    }
}

extension Shared {
    /// All documents of a collection: `@Shared(Schema.todos) var todos: SyncedCollection<Todo>`.
    public init<Element>(_ key: CollectionKey<Element>, store: SharedStore = .current)
    where Value == SyncedCollection<Element> {
        self.init(.trebuchetCollection(key), store: store)
    }
}
