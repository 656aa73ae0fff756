internal import Bytes
internal import Distributed
internal import Platform
internal import Synchronization
internal import Transports
public import Trebuchet
internal import TrebuchetActors

/// Hosts the collections of a server, each under `collections/<name>`. A collection is loaded at its first use.
public final class CollectionHost: QueryHost, Sendable {
    /// The name of the service, with which the names of its collections begin.
    public static let name = ServiceNames.collections

    private struct Contents {
        var rules: any CollectionRules
        /// Counts replacements of the rules.
        var rulesNumber = 0
        /// Unused collections, which may be deactivated to make room.
        var idle: FairTable<ActivationOwner?, String, Void>
        /// The number of collections that are being deactivated to make room.
        var unloading = 0
        /// The networks that have loaded the collections, and the number for each.
        var networks: [String: ActivationOwner?] = [:]
        var counts = UsageCounts<ActivationOwner?, Int>()

        mutating func addLoaded(_ name: String, by owner: ActivationOwner?) {
            removeLoaded(name)
            networks[name] = .some(owner.network)
            counts.add(1, to: owner.network)
        }

        mutating func removeLoaded(_ name: String) {
            idle.remove(name)
            if let network = networks.removeValue(forKey: name) { counts.remove(1, from: network) }
        }
        /// True while a collection writes a snapshot.
        var isCopying = false
        var queries: QueryQuotas
    }

    /// A host with less than this part of the memory for collections may unload those of any other host.
    private static let memoryShareDivisor = 16

    /// The limits from `expose`; rules may change them for a collection.
    public let limits: CollectionLimits
    let clock: CollectionClock
    let store: any StateStore
    /// Collections of other nodes, where each collection lives on one of several nodes.
    let remoteDocuments: RemoteCollectionDocuments?
    var isClustered: Bool { remoteDocuments != nil }
    weak let server: TrebuchetServer?
    private let principalRates: ShardedBuckets<ByteText>
    private let hostRates: ShardedBuckets<CallerHost>
    private let networkRates: ShardedBuckets<CallerHost>
    let log: CollectionLog
    /// Counts the bytes of loaded documents and open queries.
    let memory: CollectionMemoryLedger
    /// The time slices of the reactors.
    let turns: [ObjectIdentifier: LoopBound<FairTurns>]
    let collections: ServiceActors<DocumentCollection>
    private let callers = ServiceConnections<CollectionConnectionState>()
    private let contents: Mutex<Contents>

    private init(
        _ server: TrebuchetServer, _ store: any StateStore, _ rules: any CollectionRules, _ limits: CollectionLimits,
        _ clock: CollectionClock, _ placement: ActorPlacement
    ) {
        self.server = server
        let shared = placement == .cluster ? server.clusterStore : nil
        self.store = shared ?? store
        remoteDocuments = shared.map { RemoteCollectionDocuments($0) }
        self.limits = limits
        self.clock = clock
        principalRates = ShardedBuckets(limits.writesPerPrincipal)
        hostRates = ShardedBuckets(limits.writesPerHost)
        networkRates = ShardedBuckets(limits.writesPerHost.ofNetwork)
        log = CollectionLog(server)
        collections = ServiceActors(of: Self.name, at: server, limit: limits.collections)
        turns = FairTurns.ofReactors(server.actorSystem)
        let budget = server.memoryBudget
        memory = CollectionMemoryLedger(limits.memory(serverBytes: budget.limit), in: budget)
        contents = Mutex(
            Contents(rules: rules, idle: FairTable(capacity: limits.collections), queries: QueryQuotas(limits)))
    }

    /// Adds the collection service to a server. Its access policy must identify callers; otherwise every call is refused with
    /// `CollectionError.unknownCaller`.
    ///
    /// - Parameters:
    ///   - store: the store for documents. The namespaces that begin with `collection.` must have no other writer; while
    ///     another server of this process hosts collections in it, calls fail with `CollectionError.storeFailed`.
    ///   - rules: the authorization rules. Default: all callers may read and create, only the creator may update and delete.
    ///   - placement: each server has separate collections, the default, or one node of a cluster has each collection for all
    ///     nodes. In a cluster, documents are in the coordination store and not in `store`. All nodes must expose the service
    ///     with the same arguments, and `limits` apply to each node.
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
        if host.isClustered {
            // Views exist only while their collection has them; this registration tells other nodes where that is.
            server.expose(CollectionView.self, as: "\(CollectionView.prefix)*", placement: placement) { _ in
                throw TrebuchetError(.actorNotFound, "the query is no longer open; open it again")
            }
        }
        return host
    }

    /// Returns whether a collection may write a snapshot: one at a time, because the memory for it is not counted.
    func beginCopying() -> Bool {
        contents.withLock { contents in
            defer { contents.isCopying = true }
            return !contents.isCopying
        }
    }

    func endCopying() { contents.withLock { $0.isCopying = false } }

    /// The current rules.
    var rules: any CollectionRules { contents.withLock { $0.rules } }

    /// Returns the limits of a collection: at most those of the coordination store, when the collection is there.
    func limits(of collection: String) -> CollectionLimits {
        var limits = rules.limits(of: collection, limits)
        guard isClustered else { return limits }
        limits.collectionBytes = min(limits.collectionBytes, CollectionLimits.clusteredBytes)
        limits.documentsPerCollection = min(limits.documentsPerCollection, CollectionLimits.clusteredDocuments)
        limits.deduplicatedClients = min(limits.deduplicatedClients, CollectionLimits.clusteredClients)
        return limits
    }

    /// Returns the reader identity of a principal, nil where all readers are alike, with the rules it belongs to.
    func reading(
        _ principal: Principal?, in collection: String
    ) -> (reader: CollectionReader?, rules: any CollectionRules) {
        let (rules, number) = contents.withLock { ($0.rules, $0.rulesNumber) }
        return (CollectionReader(principal, in: collection, rules, number: number), rules)
    }

    /// Replaces the rules, from the next write on. All open queries are evaluated again, so readers receive exactly the
    /// documents that they may read under the new rules.
    public func replaceRules(_ rules: any CollectionRules) {
        let before = contents.withLock { contents in
            contents.rulesNumber += 1
            defer { contents.rules = rules }
            return contents.rules
        }
        _ = before
        collections.each { $0.rulesChanged() }
        authorizationDidChange(of: callers.all)
    }

    /// The active collections with their names.
    var live: [(name: String, part: DocumentCollection)] { collections.all }

    /// Handles another principal, or other roles, on a connection.
    private func principalChanged(of caller: CollectionConnectionState) {
        collections.each { $0.authorizationDidChange(of: caller) }
        authorizationDidChange(of: [caller])
    }

    /// Ends streams of results that the connections may not read any more, even if they have not opened those queries
    /// themselves.
    private func authorizationDidChange(of callers: [CollectionConnectionState]) {
        var observers: [ObjectIdentifier: (view: CollectionView, connections: [CallerConnection])] = [:]
        for caller in callers {
            for view in caller.registeredActors {
                observers[ObjectIdentifier(view), default: (view, [])].connections.append(caller.connection)
            }
        }
        for (view, connections) in observers.values {
            Task { await view.whenLocal { $0.authorizationDidChange(of: connections) } }
        }
    }

    /// The number of active collections.
    public var collectionCount: Int { collections.count }
    /// The number of different open queries.
    public var queryCount: Int { contents.withLock { $0.queries.count } }

    private func makeCollection(
        _ actorName: String, in system: TrebuchetActorSystem
    ) async throws -> DocumentCollection {
        let name = collections.name(ofActor: actorName)
        guard CollectionLimits.isName(name) else { throw CollectionError.invalidName }
        let owner = ActivationOwner.current
        try await makeRoom(for: name, of: owner)
        let fence = isClustered ? server?.clusterStore?.ownership(of: actorName) : nil
        let stored = StoredCollection(
            name, in: store, fence.map { StoredCollection.Ownership(actor: actorName, fence: $0) })
        do {
            guard let server else { throw CollectionError.closed }
            let table = try await stored.load(limits(of: name), at: server, now: clock.now())
            let memory = CollectionMemory(memory, loadedBy: owner?.host)
            try await count(table, in: memory, of: owner)
            let collection = DocumentCollection(
                name: name, table, stored, host: self, owner: owner, memory: memory, actorSystem: system)
            collections.register(collection, as: name, after: limits.idleTime) { $0.closeIfUncalled() }
            // Until its first call, the collection may be deactivated to make room.
            markIdle(name, of: owner)
            return collection
        } catch {
            contents.withLock { $0.removeLoaded(name) }
            collections.releaseUnusedName(name)
            switch error {
            case CollectionError.storeFailed: log.failure("collection '\(name)': \(error)")
            case let error as TrebuchetError where !error.isOfMovedActor: log.failure(error.message)
            default: break
            }
            throw error
        }
    }

    /// Deactivates unused collections as needed: of the host that has loaded the most, or of the same host.
    private func makeRoom(for name: String, of owner: ActivationOwner?) async throws {
        while !collections.reserve(name) {
            guard await unloadCollection(for: owner) else {
                log.refusal(
                    "to load a collection: the limit of \(limits.collections) collections in use is reached (collections)"
                )
                throw refusal(.tooManyCollections(limit: limits.collections), of: owner)
            }
        }
        contents.withLock { $0.addLoaded(name, by: owner) }
    }

    /// Counts the documents of a loaded collection, and deactivates unused collections as needed.
    private func count(
        _ table: DocumentTable, in memory: CollectionMemory, of owner: ActivationOwner?
    ) async throws {
        while true {
            do throws(CollectionError) {
                return try memory.load(table.memoryUsage)
            } catch {
                guard await unloadCollection(for: owner, beyond: error) else {
                    if memory.loadAlone(table.memoryUsage) { return }
                    log.refusal("to load a collection: \(error)")
                    throw refusal(error, of: owner)
                }
            }
        }
    }

    /// Returns the error of a load that a limit refuses. It concerns the owner only when another caller may have room: one whose host
    /// has less memory, or whose network has loaded fewer collections.
    private func refusal(_ error: CollectionError, of owner: ActivationOwner?) -> any Error {
        let isOfOwner =
            switch error {
            case .clientTooLarge: true
            case .serverTooLarge: memory.bytes(of: QuotaHolder(principal: nil, host: owner?.host)) > 0
            case .tooManyCollections: contents.withLock { $0.counts[owner.network] > 0 }
            default: false
            }
        guard isOfOwner else { return error }
        return CallerRefusal(error)
    }

    /// Deactivates an unused collection to make room for an owner; returns false when there is none.
    ///
    /// - Parameters:
    ///   - name: a collection that is not deactivated.
    ///   - limit: the exceeded limit; for that of a host, only collections of the owner are deactivated.
    func unloadCollection(
        for owner: ActivationOwner?, except name: String? = nil, beyond limit: CollectionError? = nil
    ) async -> Bool {
        if let (collection, name) = removeIdle(for: owner, except: name, beyond: limit) {
            await deactivateCollection(collection, name)
            contents.withLock { $0.unloading -= 1 }
            return true
        }
        guard contents.withLock({ $0.unloading > 0 }) else { return false }
        // Another call is making room.
        try? await Task.sleep(for: .milliseconds(1))
        return true
    }

    private func removeIdle(
        for owner: ActivationOwner?, except excluded: String?, beyond limit: CollectionError?
    ) -> (DocumentCollection, String)? {
        var (isOwn, hasShare) = (false, false)
        if case .clientTooLarge = limit { isOwn = true }
        if case .serverTooLarge = limit {
            let used = memory.bytes(of: QuotaHolder(principal: nil, host: owner?.host))
            hasShare = used <= limits.storedBytes / Self.memoryShareDivisor
        }
        return contents.withLock { contents in
            let wasIdle = excluded.map { contents.idle.remove($0) != nil } ?? false
            defer { if wasIdle, let excluded { contents.idle.insert((), for: excluded, of: owner) } }
            let count = hasShare ? 0 : contents.counts[owner.network]
            while let name = contents.idle.victim(for: owner, having: count, isOwn: isOwn) {
                contents.idle.remove(name)
                guard let collection = collections[name] else { continue }
                contents.unloading += 1
                return (collection, name)
            }
            return nil
        }
    }

    /// Releases the name of a collection that has moved to another node.
    func releaseName(of collection: DocumentCollection, _ name: String) {
        // A successor of the name stays in the list of unused collections.
        guard collections.isCurrent(collection, name) else { return }
        contents.withLock { $0.removeLoaded(name) }
        collections.releaseName(name, of: collection)
    }

    /// Replaces a collection whose log another owner has written: it is activated again, here or elsewhere, and its readers
    /// open their queries there.
    func giveUp(_ collection: DocumentCollection, _ name: String, views: [(name: String, actor: any DistributedActor)])
    {
        Task { await server?.giveUp([("\(Self.name)/\(name)", collection)] + views) }
    }

    /// Registers a collection with documents as unused.
    ///
    /// - Parameter owner: the caller that has loaded it.
    func markIdle(_ name: String, of owner: ActivationOwner?) {
        contents.withLock { if !$0.idle.renew(name) { $0.idle.insert((), for: name, of: owner) } }
    }

    /// Deactivates an unused collection, unless a caller starts to use it meanwhile.
    func deactivateCollection(_ collection: DocumentCollection, _ name: String) async {
        await collections.deactivateActor(collection, name) { self.contents.withLock { $0.removeLoaded(name) } }
    }

    // MARK: Queries

    func expose(_ view: CollectionView, as name: String) async { await server?.expose(view, as: name) }

    func consumeQuery(_ holder: QuotaHolder, isNew: Bool, of use: QueryQuotas.Use) throws(CollectionError) {
        try contents.withLock { contents throws(CollectionError) in
            try contents.queries.reserve(holder, isNew: isNew, of: use)
        }
    }

    func releaseQuery(_ holder: QuotaHolder, _ use: QueryQuotas.Use) {
        contents.withLock { $0.queries.release(holder, use) }
    }

    func didCloseQuery(_ name: String) {
        contents.withLock { $0.queries.remove() }
        Task { [weak server] in await server?.unexpose(name) }
    }

    // MARK: Callers

    /// Returns the decision of the rules; true for reading where readers are alike.
    func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool {
        let rules = rules
        if action == .read, rules.hasUniformReaders(in: collection) { return true }
        return rules.isAllowed(principal, action, document, in: collection)
    }

    /// Returns the state of the connection that makes the current call.
    func caller() throws(CollectionError) -> CollectionConnectionState {
        guard let connection = Caller.current?.connection else { throw .unknownCaller }
        return caller(connection)
    }

    func caller(_ connection: CallerConnection) -> CollectionConnectionState {
        callers.state(of: connection) {
            CollectionConnectionState(connection, maximumUses: limits.queriesPerConnection)
        } principalChanged: { [weak self] in
            self?.principalChanged(of: $0)
        }
    }

    /// Takes writes from the rates. Returns nil when they may be made, else the time to wait in milliseconds. The connection's
    /// rate is checked first, so that a connection over its rate takes nothing from others.
    ///
    /// - Parameter limit: the separate limit of the collection, if it has one.
    func consumeWrites(
        _ count: Int, of caller: CollectionConnectionState, to collection: String, _ limit: RateLimit?
    ) -> Int? {
        let now = MonotonicClock.now
        return limit.flatMap { caller.consume(count, of: .writesTo(collection), $0) }
            ?? caller.consume(count, of: .writes, limits.writesPerConnection)
            ?? caller.connection.principal.flatMap { principalRates.consume(ByteText($0.id), count, at: now) }
            ?? caller.host.flatMap { hostRates.consume($0, count, at: now) }
            ?? caller.host.flatMap { $0.network == $0 ? nil : networkRates.consume($0.network, count, at: now) }
    }

    /// Takes one call that opens, closes or gets a query from the rate.
    func consumeRead(of caller: CollectionConnectionState) throws(CollectionError) {
        if let wait = caller.consume(of: .reads, limits.readsPerConnection) {
            throw .rateLimited(retryAfterMilliseconds: wait)
        }
    }

    /// For tests.
    var closeHandlerCount: Int { callers.closeHandlerCount }
}
