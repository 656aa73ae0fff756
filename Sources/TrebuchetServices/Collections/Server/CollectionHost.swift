internal import Synchronization
public import Trebuchet

/// Hosts the collections of a server, each under `collections/<name>`, loaded when somebody first uses it.
public final class CollectionHost: Sendable {
    /// The name of the service, and the beginning of its collections' names.
    public static let name = "collections"
    static let viewPrefix = "collection-views/"

    private struct Contents {
        var collections = 0
        var queries = 0
        var visitors: [CallerConnection: CollectionVisitor] = [:]
    }

    public let limits: CollectionLimits
    let rules: any CollectionRules
    let clock: CollectionClock
    private let store: any StateStore
    private weak let server: TrebuchetServer?
    private let contents = Mutex(Contents())

    private init(
        _ server: TrebuchetServer, _ store: any StateStore, _ rules: any CollectionRules, _ limits: CollectionLimits,
        _ clock: CollectionClock
    ) {
        self.server = server
        self.store = store
        self.rules = rules
        self.limits = limits
        self.clock = clock
    }

    /// Makes a server host collections. Its access policy must identify callers: else every call is refused with
    /// `CollectionError.unknownCaller`.
    ///
    /// - Parameters:
    ///   - store: where documents are kept. Nothing else may write to the namespaces that begin with `collection.`; while another
    ///     server of this process hosts collections in it, calls fail with `CollectionError.storeFailed`.
    ///   - rules: who may do what. Default: everybody reads and creates, only the creator updates and deletes.
    @discardableResult
    public static func expose(
        on server: TrebuchetServer, store: any StateStore = MemoryStore(),
        rules: any CollectionRules = CreatorRules(), limits: CollectionLimits = CollectionLimits()
    ) -> CollectionHost {
        expose(on: server, store: store, rules: rules, limits: limits, clock: CollectionClock())
    }

    static func expose(
        on server: TrebuchetServer, store: any StateStore, rules: any CollectionRules, limits: CollectionLimits,
        clock: CollectionClock
    ) -> CollectionHost {
        let host = CollectionHost(server, store, rules, limits, clock)
        let system = server.actorSystem
        server.expose(DocumentCollection.self, as: "\(name)/*") { try await host.makeCollection($0, in: system) }
        return host
    }

    /// Collections that are in use now.
    public var collectionCount: Int { contents.withLock { $0.collections } }
    /// Different queries that are open now.
    public var queryCount: Int { contents.withLock { $0.queries } }

    private func makeCollection(
        _ actorName: String, in system: TrebuchetActorSystem
    ) async throws(CollectionError) -> DocumentCollection {
        let name = actorName.dropFirst(bytes: Self.name.utf8.count + 1)
        guard CollectionLimits.isName(name) else { throw .invalidName }
        let isAllowed = contents.withLock { contents in
            guard contents.collections < limits.collections else { return false }
            contents.collections += 1
            return true
        }
        guard isAllowed else { throw .tooManyCollections(limit: limits.collections) }
        let stored = StoredCollection(name, in: store)
        do throws(CollectionError) {
            guard let server else { throw .closed }
            let table = try await stored.load(limits, at: server, now: clock.now())
            return DocumentCollection(name: name, table, stored, host: self, actorSystem: system)
        } catch {
            contents.withLock { $0.collections -= 1 }
            throw error
        }
    }

    /// A collection has closed, once.
    func didClose(_ name: String) {
        contents.withLock { $0.collections -= 1 }
        Task { [weak server] in await server?.unexpose("\(Self.name)/\(name)") }
    }

    // MARK: Queries

    func expose(_ view: CollectionView, as name: String) async { await server?.expose(view, as: name) }

    func reserveQuery() throws(CollectionError) {
        let isAllowed = contents.withLock { contents in
            guard contents.queries < limits.queries else { return false }
            contents.queries += 1
            return true
        }
        guard isAllowed else { throw .tooManyQueries(limit: limits.queries) }
    }

    func didCloseQuery(_ name: String) {
        contents.withLock { $0.queries -= 1 }
        Task { [weak server] in await server?.unexpose(name) }
    }

    // MARK: Callers

    /// What rules say; all may read where readers are alike.
    func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool {
        if action == .read, rules.readersAreAlike(in: collection) { return true }
        return rules.may(principal, action, document, in: collection)
    }

    /// Who makes the call that runs now.
    func visitor() throws(CollectionError) -> CollectionVisitor {
        guard let connection = Caller.current?.connection else { throw .unknownCaller }
        let (visitor, isNew) = contents.withLock { contents in
            if let visitor = contents.visitors[connection] { return (visitor, false) }
            let visitor = CollectionVisitor(connection, limits: limits)
            contents.visitors[connection] = visitor
            return (visitor, true)
        }
        if isNew { connection.onClose { [weak self, weak connection] in self?.forget(connection) } }
        return visitor
    }

    private func forget(_ connection: CallerConnection?) {
        guard let connection else { return }
        let removed = contents.withLock { $0.visitors.removeValue(forKey: connection) }
        _ = removed
    }
}
