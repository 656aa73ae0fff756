internal import Distributed
internal import Platform
internal import Synchronization
public import Trebuchet
internal import TrebuchetActors

/// Hosts the collections of a server, each under `collections/<name>`, loaded when somebody first uses it.
public final class CollectionHost: QueryHost, Sendable {
    /// The name of the service, and the beginning of its collections' names.
    public static let name = "collections"

    private struct Contents {
        var rules: any CollectionRules
        /// How often others were put in force.
        var rulesNumber = 0
        /// Those that nobody uses, which others may take the place of.
        var resting = LeastRecent<String>()
        /// Whether a collection is being written anew.
        var isCopying = false
        var queries: QueryShares
    }

    /// Those that it was exposed with; rules may give a collection others.
    public let limits: CollectionLimits
    let clock: CollectionClock
    let store: any StateStore
    /// Those that other nodes own, where collections live on one node of several each.
    let others: OtherCollections?
    var isPlaced: Bool { others != nil }
    weak let server: TrebuchetServer?
    private let principalRates: SharedBuckets<ByteText>
    private let hostRates: SharedBuckets<CallerHost>
    let log: CollectionLog
    private let collections: ServiceParts<DocumentCollection>
    private let visitors = Visitors<CollectionVisitor>()
    private let contents: Mutex<Contents>

    private init(
        _ server: TrebuchetServer, _ store: any StateStore, _ rules: any CollectionRules, _ limits: CollectionLimits,
        _ clock: CollectionClock, _ placement: ActorPlacement
    ) {
        self.server = server
        let shared = placement == .cluster ? server.clusterStore : nil
        self.store = shared ?? store
        others = shared.map { OtherCollections($0) }
        self.limits = limits
        self.clock = clock
        principalRates = SharedBuckets(limits.writesPerPrincipal)
        hostRates = SharedBuckets(limits.writesPerHost)
        log = CollectionLog(server)
        collections = ServiceParts(of: Self.name, at: server, limit: limits.collections)
        contents = Mutex(Contents(rules: rules, queries: QueryShares(limits)))
    }

    /// Makes a server host collections. Its access policy must identify callers: else every call is refused with
    /// `CollectionError.unknownCaller`.
    ///
    /// - Parameters:
    ///   - store: where documents are kept. Nothing else may write to the namespaces that begin with `collection.`; while another
    ///     server of this process hosts collections in it, calls fail with `CollectionError.storeFailed`.
    ///   - rules: who may do what. Default: everybody reads and creates, only the creator updates and deletes.
    ///   - placement: whether each server has collections of its own, the default, or one node of a cluster has each for all. Then
    ///     documents are kept at the engine and not in `store`, all nodes expose the same, and `limits` count at each node.
    @discardableResult
    public static func expose(
        on server: TrebuchetServer, store: any StateStore = MemoryStore(),
        rules: any CollectionRules = CreatorRules(), limits: CollectionLimits = CollectionLimits(),
        placement: ActorPlacement = .node
    ) -> CollectionHost {
        expose(
            on: server, store: store, rules: rules, limits: limits, clock: CollectionClock(), placement: placement)
    }

    static func expose(
        on server: TrebuchetServer, store: any StateStore, rules: any CollectionRules, limits: CollectionLimits,
        clock: CollectionClock, placement: ActorPlacement = .node
    ) -> CollectionHost {
        let host = CollectionHost(server, store, rules, limits, clock, placement)
        let system = server.actorSystem
        server.expose(DocumentCollection.self, as: "\(name)/*", placement: placement) {
            try await host.makeCollection($0, in: system)
        }
        server.authorize(helpers: CollectionView.prefix) { view in
            CollectionView.collection(ofView: view).map { ($0, "open(_:)") }
        }
        if host.isPlaced {
            // Those that there are, are there because their collections have them: so that other nodes know where that is.
            server.expose(CollectionView.self, as: "\(CollectionView.prefix)*", placement: placement) { _ in
                throw TrebuchetError(.actorNotFound, "the query is not open any more; open it again")
            }
        }
        return host
    }

    /// Whether a collection may write itself anew: one at a time, since what that takes in memory is not counted.
    func beginCopying() -> Bool {
        contents.withLock { contents in
            defer { contents.isCopying = true }
            return !contents.isCopying
        }
    }

    func endCopying() { contents.withLock { $0.isCopying = false } }

    /// Those of now.
    var rules: any CollectionRules { contents.withLock { $0.rules } }

    /// What a collection may grow to: no more than an engine keeps of one, where it is kept there.
    func limits(of collection: String) -> CollectionLimits {
        var limits = rules.limits(of: collection, limits)
        guard isPlaced else { return limits }
        limits.collectionBytes = min(limits.collectionBytes, CollectionLimits.placedBytes)
        limits.documentsPerCollection = min(limits.documentsPerCollection, CollectionLimits.placedDocuments)
        limits.rememberedClients = min(limits.rememberedClients, CollectionLimits.placedClients)
        return limits
    }

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
        collections.each { $0.rulesChanged() }
        rightsChanged(of: visitors.all)
    }

    /// Collections that are in use now, by their names.
    var live: [(name: String, part: DocumentCollection)] { collections.all }

    /// Somebody else is signed in over a connection, or with other roles.
    private func principalChanged(of visitor: CollectionVisitor) {
        collections.each { $0.rightsChanged(of: visitor) }
        rightsChanged(of: [visitor])
    }

    /// What they observe and may not read any more ends, also where they have not opened it themselves.
    private func rightsChanged(of visitors: [CollectionVisitor]) {
        var observers: [ObjectIdentifier: (view: CollectionView, connections: [CallerConnection])] = [:]
        for visitor in visitors {
            for view in visitor.followed {
                observers[ObjectIdentifier(view), default: (view, [])].connections.append(visitor.connection)
            }
        }
        for (view, connections) in observers.values {
            Task { await view.whenLocal { $0.rightsChanged(of: connections) } }
        }
    }

    /// Collections that are in use now.
    public var collectionCount: Int { collections.count }
    /// Different queries that are open now.
    public var queryCount: Int { contents.withLock { $0.queries.count } }

    private func makeCollection(
        _ actorName: String, in system: TrebuchetActorSystem
    ) async throws(CollectionError) -> DocumentCollection {
        let name = collections.name(ofActor: actorName)
        guard CollectionLimits.isName(name) else { throw .invalidName }
        try await makeRoom(for: name)
        let fence = isPlaced ? server?.clusterStore?.ownership(of: actorName) : nil
        let stored = StoredCollection(
            name, in: store, fence.map { StoredCollection.Ownership(actor: actorName, fence: $0) })
        do throws(CollectionError) {
            guard let server else { throw .closed }
            let table = try await stored.load(limits(of: name), at: server, now: clock.now())
            let collection = DocumentCollection(name: name, table, stored, host: self, actorSystem: system)
            collections.add(collection, as: name, after: limits.idleTime) { $0.closeIfUncalled() }
            // Until it is called others may have its place.
            didRest(name)
            return collection
        } catch {
            collections.giveBack(name)
            if case .storeFailed = error { log.failure("collection '\(name)': \(error)") }
            throw error
        }
    }

    /// Lets those go that were not used for the longest time, as far as that is needed.
    private func makeRoom(for name: String) async throws(CollectionError) {
        while !collections.reserve(name) {
            guard let (collection, longest) = takeLongestResting() else {
                log.refusal("a collection: the server has \(limits.collections) in use (collections)")
                throw .tooManyCollections(limit: limits.collections)
            }
            await letGo(collection, longest)
        }
    }

    private func takeLongestResting() -> (DocumentCollection, String)? {
        contents.withLock { contents in
            while let longest = contents.resting.first {
                contents.resting.remove(longest)
                if let collection = collections[longest] { return (collection, longest) }
            }
            return nil
        }
    }

    /// A collection has gone to another node.
    func giveBack(_ name: String) {
        contents.withLock { $0.resting.remove(name) }
        collections.giveBack(name)
    }

    /// Its log has been written by another owner: it is made anew, here or elsewhere, and its readers open their queries there.
    func giveUp(_ collection: DocumentCollection, _ name: String, views: [(name: String, actor: any DistributedActor)])
    {
        Task { await server?.giveUp([("\(Self.name)/\(name)", collection)] + views) }
    }

    /// What the names of a collection's views begin with: they say whose view it is, and are in its slot where it is owned by one node.
    func viewPrefix(_ collection: String) -> String { "\(CollectionView.prefix){\(Self.name)/\(collection)}/" }

    /// Nobody uses a collection with documents any more.
    func didRest(_ name: String) { contents.withLock { $0.resting.use(name) } }

    /// Lets a collection go that nobody uses, unless somebody comes meanwhile.
    func letGo(_ collection: DocumentCollection, _ name: String) async {
        await collections.letGo(collection, name) { self.contents.withLock { $0.resting.remove(name) } }
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
            CollectionVisitor(connection, places: limits.queriesPerConnection)
        } principalChanged: { [weak self] in
            self?.principalChanged(of: $0)
        }
    }

    /// Nil when so many writes may be made; else the time to wait for that, in milliseconds. The connection first: who is over its
    /// own rate takes nothing from others.
    ///
    /// - Parameter limit: that of the collection, if it has one of its own.
    func takeWrites(
        _ count: Int, of visitor: CollectionVisitor, to collection: String, _ limit: RateLimit?
    ) -> Int? {
        let now = MonotonicClock.now
        return limit.flatMap { visitor.take(count, of: .writesTo(collection), $0) }
            ?? visitor.take(count, of: .writes, limits.writes)
            ?? visitor.connection.principal.flatMap { principalRates.take(ByteText($0.id), count, at: now) }
            ?? visitor.host.flatMap { hostRates.take($0, count, at: now) }
    }

    /// Takes one of the calls that open, close and get queries.
    func takeRead(of visitor: CollectionVisitor) throws(CollectionError) {
        if let wait = visitor.take(of: .reads, limits.reads) { throw .rateLimited(retryAfterMilliseconds: wait) }
    }

    /// For tests.
    var closeHandlerCount: Int { visitors.closeHandlerCount }
}
