internal import Synchronization
public import Trebuchet

/// Hosts the collections of a server, each under `collections/<name>`, loaded when somebody first uses it.
public final class CollectionHost: Sendable {
    /// The name of the service, and the beginning of its collections' names.
    public static let name = "collections"
    static let viewPrefix = "collection-views/"

    private struct Loaded {
        weak var collection: DocumentCollection?
    }

    private struct Contents {
        var rules: any CollectionRules
        /// How often others were put in force.
        var rulesNumber = 0
        /// Those in memory, and those that are being loaded, which are nobody yet.
        var collections: [String: Loaded] = [:]
        /// Those that nobody uses, which others may take the place of.
        var resting = LeastRecent<String>()
        var queries: QueryShares
    }

    /// Those that it was exposed with; rules may give a collection others.
    public let limits: CollectionLimits
    let clock: CollectionClock
    let store: any StateStore
    weak let server: TrebuchetServer?
    private let rates: WriteRates
    let log: CollectionLog
    private let visitors = Visitors<CollectionVisitor>()
    private let contents: Mutex<Contents>

    private init(
        _ server: TrebuchetServer, _ store: any StateStore, _ rules: any CollectionRules, _ limits: CollectionLimits,
        _ clock: CollectionClock
    ) {
        self.server = server
        self.store = store
        self.limits = limits
        self.clock = clock
        rates = WriteRates(limits)
        log = CollectionLog(server)
        contents = Mutex(Contents(rules: rules, queries: QueryShares(limits)))
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

    /// Those of now.
    var rules: any CollectionRules { contents.withLock { $0.rules } }

    /// Who somebody is as a reader, nil where all are alike, under which rules.
    func reading(
        _ principal: Principal?, in collection: String
    ) -> (reader: CollectionReader?, rules: any CollectionRules) {
        let (rules, number) = contents.withLock { ($0.rules, $0.rulesNumber) }
        return (CollectionReader(principal, in: collection, rules, number: number), rules)
    }

    /// Puts other rules in force, from the next write on. Who reads what it may not read any more is shown the rest, and who
    /// may read more is shown that: their queries are evaluated anew.
    public func use(_ rules: any CollectionRules) {
        let before = contents.withLock { contents in
            contents.rulesNumber += 1
            defer { contents.rules = rules }
            return contents.rules
        }
        _ = before
        eachCollection { $0.rulesChanged() }
        rightsChanged(of: visitors.all)
    }

    /// Collections that are in use now, by their names.
    var live: [String: DocumentCollection] { contents.withLock { $0.collections.compactMapValues(\.collection) } }

    /// Somebody else is signed in over a connection, or with other roles.
    private func principalChanged(of visitor: CollectionVisitor) {
        eachCollection { $0.rightsChanged(of: visitor) }
        rightsChanged(of: [visitor])
    }

    /// What they observe and may not read any more ends, also where they have not opened it themselves.
    private func rightsChanged(of visitors: [CollectionVisitor]) {
        var observers: [ObjectIdentifier: (view: CollectionView, connections: [CallerConnection])] = [:]
        for visitor in visitors {
            for view in visitor.observed {
                observers[ObjectIdentifier(view), default: (view, [])].connections.append(visitor.connection)
            }
        }
        for (view, connections) in observers.values {
            Task { await view.whenLocal { $0.rightsChanged(of: connections) } }
        }
    }

    /// Each in its own time.
    private func eachCollection(_ body: @escaping @Sendable (isolated DocumentCollection) -> Void) {
        for loaded in contents.withLock({ Array($0.collections.values) }) {
            guard let collection = loaded.collection else { continue }
            Task { await collection.whenLocal(body) }
        }
    }

    /// Collections that are in use now.
    public var collectionCount: Int { contents.withLock { $0.collections.count } }
    /// Different queries that are open now.
    public var queryCount: Int { contents.withLock { $0.queries.count } }

    private func makeCollection(
        _ actorName: String, in system: TrebuchetActorSystem
    ) async throws(CollectionError) -> DocumentCollection {
        let name = actorName.dropFirst(bytes: Self.name.utf8.count + 1)
        guard CollectionLimits.isName(name) else { throw .invalidName }
        try await makeRoom(for: name)
        let stored = StoredCollection(name, in: store)
        do throws(CollectionError) {
            guard let server else { throw .closed }
            let table = try await stored.load(rules.limits(of: name, limits), at: server, now: clock.now())
            let collection = DocumentCollection(name: name, table, stored, host: self, actorSystem: system)
            contents.withLock { contents in
                contents.collections[name]?.collection = collection
                // Until it is called others may have its place.
                contents.resting.use(name)
            }
            let time = limits.idleTime
            Task { [weak collection] in
                try? await Task.sleep(for: time)
                await collection?.whenLocal { $0.closeIfUncalled() }
            }
            return collection
        } catch {
            let removed = contents.withLock { $0.collections.removeValue(forKey: name) }
            _ = removed
            if case .storeFailed = error { log.failure("collection '\(name)': \(error)") }
            throw error
        }
    }

    /// Lets those go that were not used for the longest time, as far as that is needed.
    private func makeRoom(for name: String) async throws(CollectionError) {
        while true {
            let (hasRoom, candidate) = contents.withLock { contents -> (Bool, (DocumentCollection, String)?) in
                guard contents.collections.count >= limits.collections else {
                    contents.collections[name] = Loaded()
                    return (true, nil)
                }
                while let longest = contents.resting.first {
                    contents.resting.remove(longest)
                    if let collection = contents.collections[longest]?.collection {
                        return (false, (collection, longest))
                    }
                }
                return (false, nil)
            }
            if hasRoom { return }
            guard let candidate else {
                log.refusal("a collection: the server has \(limits.collections) in use (collections)")
                throw .tooManyCollections(limit: limits.collections)
            }
            await letGo(candidate.0, candidate.1)
        }
    }

    /// Nobody uses a collection with documents any more.
    func didRest(_ name: String) { contents.withLock { $0.resting.use(name) } }

    /// Lets a collection go that nobody uses, unless somebody comes meanwhile.
    func letGo(_ collection: DocumentCollection, _ name: String) async {
        await server?.letGo(collection, named: "\(Self.name)/\(name)", if: { $0.isUnused }) { collection, goes in
            collection.didDecide(goes)
            guard goes else { return }
            let removed = self.contents.withLock { contents in
                contents.resting.remove(name)
                return contents.collections.removeValue(forKey: name)
            }
            _ = removed
        }
    }

    // MARK: Queries

    func expose(_ view: CollectionView, as name: String) async { await server?.expose(view, as: name) }

    func takeQuery(_ holder: Holder, isNew: Bool, of use: QueryShares.Use) throws(CollectionError) {
        try contents.withLock { contents throws(CollectionError) in
            try contents.queries.take(holder, isNew: isNew, of: use)
        }
    }

    func releaseQuery(_ holder: Holder, _ use: QueryShares.Use) {
        contents.withLock { $0.queries.release(holder, use) }
    }

    func didCloseQuery(_ name: String) {
        contents.withLock { $0.queries.remove() }
        Task { [weak server] in await server?.unexpose(name) }
    }

    // MARK: Callers

    /// What rules say; all may read where readers are alike.
    func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool {
        let rules = rules
        if action == .read, rules.readersAreAlike(in: collection) { return true }
        return rules.may(principal, action, document, in: collection)
    }

    /// Who makes the call that runs now.
    func visitor() throws(CollectionError) -> CollectionVisitor {
        guard let connection = Caller.current?.connection else { throw .unknownCaller }
        return visitor(connection)
    }

    func visitor(_ connection: CallerConnection) -> CollectionVisitor {
        visitors.visitor(connection) {
            CollectionVisitor(connection, rates, limits: limits)
        } principalChanged: { [weak self] in
            self?.principalChanged(of: $0)
        }
    }

    /// For tests.
    var closeHandlerCount: Int { visitors.closeHandlerCount }
}
