internal import Platform
internal import Bytes
public import Distributed
internal import Networking
internal import Relays
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire
internal import WebSockets

/// A server of distributed actors.
///
///     let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 8080))
///     let list = TodoList(actorSystem: server.actorSystem)
///     await server.expose(list, as: "todos")
///     try await server.run()
public final class TrebuchetServer: Sendable {
    private enum State {
        case idle
        case running(WebSocketServer?)
        case stopping
    }

    /// The system that the server's actors are made in.
    public let actorSystem: TrebuchetActorSystem
    private let transport: TrebuchetTransport
    let parts: ServerParts
    let shards: [ServerShard]
    let access: AccessPolicy
    let own: OwnClients
    let owner: (any AnyObject & Sendable)?
    /// On its own store, and on what actors of the cluster persist.
    private let claims: [StoreClaim]
    /// Of what services keep.
    let otherClaims = Mutex<[StoreClaim]>([])
    private let state = Mutex(State.idle)
    let stopped = StateRelay(false)
    let pageSources = Mutex<[PageSource]>([])
    /// Set when it listens.
    let servedPages = Mutex<Pages?>(nil)
    /// Set when it shuts down.
    let deactivation = Mutex<Task<Void, Never>?>(nil)
    /// Whether it was told to end, and clients are to go elsewhere.
    let isLeaving = Atomic<Bool>(false)
    /// Set when it has addresses for operators.
    let operatorListeners = Mutex(OperatorListeners())
    /// Counts clients of this process: they are spread over the reactors.
    let nextLocal = Atomic<Int>(0)

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - reactors: threads that connections and actors live on; as many as the machine has cores by default.
    ///   - access: who may connect, and what callers may do; by default every client may connect and call everything. Its rules
    ///     (`AccessPolicy.authorize`) apply to every connection, `.local` ones before `start` included.
    ///   - store: keeps the states marked `@StreamedState(persisted: true)` of exposed actors, except those with
    ///     `placement: .cluster` at a node. Without one, the default, they live in memory as all others, and a node says so in its log.
    ///     The server does not close it. One server at a time has a store: while another one of this process has it, `start` and calls of
    ///     actors with such states fail.
    ///   - cluster: makes it one of several nodes. None by default. The engine keeps the persisted states of actors with
    ///     `placement: .cluster`, and the next owner of such an actor takes them from there. Those of all other actors are in `store`.
    ///   - showsErrorText: whether callers get text and type of errors that are not `Codable`; for development. By default
    ///     these go to `log` under a number, which is all that the caller gets. Errors that are `Codable`, and every
    ///     `TrebuchetError`, are for callers in any case.
    ///   - log: told, in a line each, what no caller is told: an error that is not `Codable`, an actor that was let go with an
    ///     error, a method that held up all others of its reactor. It may be called from any thread and must not block.
    ///     Standard error by default.
    public convenience init(
        transport: TrebuchetTransport, reactors: Int? = nil, limits: ServerLimits = ServerLimits(),
        access: AccessPolicy = .open, store: (any StateStore)? = nil, cluster: ClusterMembership? = nil,
        showsErrorText: Bool = false, log: @escaping @Sendable (String) -> Void = ServerLog.standardError
    ) {
        self.init(
            transport: transport, on: .forServer(count: reactors), limits: limits, access: access, store: store,
            cluster: cluster, showsErrorText: showsErrorText, log: log)
    }

    /// The same on reactors of a test's, whose owner is held.
    package init(
        transport: TrebuchetTransport, on group: ReactorGroup, holding owner: (any AnyObject & Sendable)? = nil,
        limits: ServerLimits, access: AccessPolicy, store: (any StateStore)?, cluster: ClusterMembership? = nil,
        showsErrorText: Bool,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.owner = owner
        self.transport = transport
        self.access = access
        let principals = limits.callsPerPrincipalRate.map { SharedBuckets<PrincipalName>($0) }
        let parts = ServerParts(
            reactors: group.reactors.count, limits: limits, showsErrorText: showsErrorText, log: log)
        let system = TrebuchetActorSystem(loops: group.reactors, locals: parts.locals)
        system.serve(parts.directory, as: parts.answers.names.instance)
        system.reportUndecodable = { [log = parts.log] value in if value.isLogged { log("\(value)") } }
        // What is kept at a cluster's engine is looked at as the cluster is.
        parts.probedStore.withLock { $0 = store }
        var claims: [StoreClaim] = []
        for (store, isPlaced) in [(store, false), (cluster?.store, true)] {
            guard let store else { continue }
            let claim = StoreClaim(store, for: PersistedNamespace.name)
            claims.append(claim)
            for shard in system.shards {
                let writer = StateWriter(
                    store, claim, parts.disclosure, stateSize: limits.persistedStateSize,
                    eventBytes: limits.persistedEventBytes, answerTime: limits.answerTime,
                    reactor: shard.reactor)
                parts.locals.write(writer, on: shard, isPlaced: isPlaced)
            }
        }
        self.claims = claims
        actorSystem = system
        self.parts = parts
        shards = zip(system.shards, group.reactors).enumerated().map { index, place in
            let (states, reactor) = place
            states.memory = parts.memory
            states.resumeTime = limits.resumeTime
            return ServerShard(states: states, on: reactor, index: index, parts: parts, system: system)
        }
        for shard in shards {
            shard.siblings = shards
            shard.states.server = shard
            shard.principals = principals
            shard.onConnect = access.onConnect
            shard.rules = access.rules
        }
        let own = OwnClients(shards)
        self.own = own
        parts.directory.reach { own.way(to: $0) }
        if let cluster { Self.join(cluster, parts, shards) }
    }

    deinit { takeApart() }

    func takeApart() {
        parts.directory.reach(by: nil)
        own.close()
        parts.nodes?.end()
        parts.hosting.close()
        for shard in shards { shard.reactor.run { shard.takeApart() } }
        actorSystem.takeApart()
        locals.takeApart()
        parts.events.removeAll()
        parts.probedStore.withLock { $0 = nil }
        for claim in claims { claim.giveBack() }
        for claim in otherClaims.withLock({ $0 }) { claim.giveBack() }
    }

    var directory: ActorDirectory { parts.directory }
    var locals: LocalActors { parts.locals }
    private var limits: ServerLimits { parts.limits }

    /// Lets callers name types for the generic parameters of methods, beside the standard library's scalars and arrays and
    /// dictionaries of them. Types that no server of the process has named are refused with `invalidArguments`.
    public func register(genericTypes types: any (Codable & Sendable).Type...) {
        for type in types { GenericTypes.register(type) }
    }

    /// Makes errors of these types arrive as themselves when an actor that lives in a client throws them. Those that a method
    /// names in `throws(…)` need no registration.
    public func register(errors types: any (Error & Decodable).Type...) {
        for type in types { parts.hosting.errors.register(type) }
    }

    // MARK: Actors

    /// Lets clients call and observe an actor under a name. An actor exposed before under that name gives way.
    ///
    /// With a store, the actor's persisted states are loaded before this returns. When that fails, calls and streams get
    /// the error; each first tries to load again, and so does the server, until it has loaded them. The actor belongs to this server: at
    /// a node of a cluster each node has its own, whichever slots it owns.
    ///
    /// - Parameter inspectable: whether the inspector shows the actor's states, and the arguments of its calls. False shows neither, of all
    ///   actors of its type in the process.
    public func expose<A: DistributedActor>(_ actor: A, as name: String, inspectable: Bool = true) async
    where A.ActorSystem == TrebuchetActorSystem {
        if !inspectable { ActorTypes.any(A.self).hide() }
        guard locals.mustLoad(A.self) else {
            warnOfMemory(A.self, as: name)
            let old = directory.record(ActorName(name))
            directory.insert(locals.record(of: actor, name: name, holding: true, in: actorSystem))
            await forget(name)
            await retire(old)
            return
        }
        let old = directory.record(ActorName(name))
        let registration = ActorDirectory.Registration(type: ActorTypes.any(A.self)) {
            [weak actorSystem, locals, loads = parts.loads] name in
            guard let actorSystem else { throw TrebuchetError(.unavailable, "the server is gone") }
            let record = try await loads.noting(name) {
                try await locals.loadedRecord(of: actor, name: name, in: actorSystem)
            }
            // Nothing makes another one.
            guard !record.life.isGone else {
                throw TrebuchetError(.unavailable, "actor '\(name)' was let go of by its server; expose it again")
            }
            return record
        }
        await locals.retirements.during(name) {
            directory.insert(ActorName(name), registration)
            await forget(name)
            if old?.actor !== actor { await retire(old) }
        }
        if await !load(ActorName(name)) { keepLoading(ActorName(name)) }
    }

    /// Waits until the states of an actor that is out of reach are written.
    private func retire(_ record: ActorRecord?) async {
        guard let record, let persisted = record.persisted, let actor = record.actor else { return }
        // Under another name as well, it is kept under the first.
        guard persisted.name == record.name else { return }
        if let error = await persisted.retire() { parts.log(persisted.loss(error)) }
        (actor.id as? TrebuchetActorID).map { locals.setPersistedStates(nil, of: $0) }
    }

    /// Makes actors when they are first called: `"lists/*"` stands for every name that begins with `lists/`.
    ///
    /// Names of more than 256 bytes are refused.
    ///
    /// With `idle`, an actor goes when it had neither calls nor streams for that time: first its `deactivate()` runs, when its
    /// declaration has one (`func deactivate() async throws`, for at most 5 seconds; what it throws is logged), then its persisted
    /// states are written. Calls that come meanwhile wait for the next actor of that name, and streams find that it was made
    /// anew. Code of the server that keeps such an actor for itself keeps it from being freed, not from being replaced.
    /// `shutdown` runs the `deactivate()` of all actors made on demand, with `idle` or without.
    ///
    /// - Parameters:
    ///   - idle: kept to within an eighth, at most 5 seconds. Nil, the default: actors stay.
    ///   - discarding: whether an actor goes, too, when a `@StreamedState` of it has changed that no store keeps. False by
    ///     default: it stays then.
    ///   - placement: whether each server has its own, the default, or one node of a cluster has it for all. Then the others send it
    ///     there what their clients ask of it, all nodes expose the same, and the engine keeps its persisted states.
    ///   - inspectable: as where one actor is exposed. True by default.
    ///   - make: makes the actor for the whole name (`lists/42`). What it throws, the caller gets.
    public func expose<A: DistributedActor>(
        _ type: A.Type, as pattern: String, idle: Duration? = nil, discarding: Bool = false,
        placement: ActorPlacement = .node, inspectable: Bool = true,
        _ make: @escaping @Sendable (_ id: String) async throws -> A
    ) where A.ActorSystem == TrebuchetActorSystem {
        precondition(pattern.utf8.last == UInt8(ascii: "*"), "pattern '\(pattern)' must end in *, as lists/*")
        if !inspectable { ActorTypes.any(A.self).hide() }
        let isPlaced = placement == .cluster && parts.nodes != nil
        if !locals.mustLoad(A.self, isPlaced: isPlaced) { warnOfMemory(A.self, as: pattern) }
        directory.insert(
            prefix: String(pattern.dropLast()),
            ActorDirectory.Registration(
                type: ActorTypes.any(A.self),
                make: { [weak actorSystem, locals, loads = parts.loads] name in
                    let actor = try await make(name)
                    guard let actorSystem else { throw TrebuchetError(.unavailable, "the server is gone") }
                    return try await loads.noting(name) {
                        try await locals.loadedRecord(of: actor, name: name, in: actorSystem, isPlaced: isPlaced)
                    }
                }, idle: idle.map { IdlePolicy(time: $0, discards: discarding) },
                isPlaced: isPlaced))
    }

    /// Takes an actor out of reach. Streams of those who observe it go on while the actor lives.
    /// Its persisted states are written before this returns, and are not kept from then on; while the store fails this waits,
    /// and so does who exposes another actor under the name.
    public func unexpose(_ name: String) async {
        await locals.retirements.during(name) {
            let old = directory.record(ActorName(name))
            directory.remove(ActorName(name))
            await forget(name)
            await retire(old)
        }
    }

    private func forget(_ name: String) async {
        for shard in shards { await shard.reactor.perform { shard.forget(ActorName(name)) } }
    }

    // MARK: Running

    /// The address that it listens on; nil while it does not.
    public var address: SocketAddress? {
        state.withLock { if case .running(let listener) = $0 { listener?.address } else { nil } }
    }

    /// What a server is doing.
    public enum Status: Sendable {
        /// It has not begun to listen.
        case idle
        /// It listens, and takes connections.
        case serving
        /// It was told to stop: it takes no more connections, and calls under way end.
        case draining
        /// It has ended: its port is free, and its connections are closed.
        case stopped
    }

    /// What it is doing now. From outside, `GET /healthz` is answered 200 while it serves.
    public var status: Status {
        state.withLock { state in
            switch state {
            case .idle: .idle
            case .running: .serving
            case .stopping: stopped.currentValue ? .stopped : .draining
            }
        }
    }

    /// Begins to listen, and returns the address. Throws `TransportError`, `addressInUse` for one; `StateStoreError` of code
    /// `inUse` while another server of this process has the store; `ClusterEngineError` when a node's engine is out of reach.
    ///
    /// SIGPIPE is ignored from then on, unless the program has a handler for it: the reader of a log that goes does not end the server.
    @discardableResult
    public func start() async throws -> SocketAddress {
        guard case .webSocket(let host, let port, let security) = transport.kind else {
            throw TransportError(.addressInvalid, "a server listens with .webSocket(host:port:); .local is for clients")
        }
        if case .client = security {
            throw TransportError(.tls, "a server needs TLSServerSettings: a certificate and its key")
        }
        let isIdle = state.withLock { state in
            guard case .idle = state else { return false }
            state = .running(nil)
            return true
        }
        guard isIdle else {
            if let address { return address }
            throw TransportError(.closed, "the server is running already, or was shut down")
        }
        BrokenPipes.ignore()
        var taken: [StoreClaim] = []
        do {
            for claim in claims { if try claim.take() { taken.append(claim) } }
            try await startNode()
            let pages = Pages(pageSources.withLock { $0 }, limits.pages)
            servedPages.withLock { $0 = pages }
            let listener = try WebSocketConnections.listen(
                host: host, port: port, security, compression: transport.compression, shards: shards, parts: parts,
                access: access, pages: pages)
            state.withLock { $0 = .running(listener) }
            if let writer = shards.first?.stateWriter { Task { await writer.forgetEarlierCalls() } }
            let (log, events) = (parts.plainLog, parts.events)
            for shard in shards {
                shard.reactor.onStall = { stall in
                    log("\(stall)")
                    events.tell(
                        .reactorHeld(
                            reactor: stall.reactor, by: stall.activity, milliseconds: stall.milliseconds,
                            isOver: stall.isOver))
                }
            }
            return listener.address
        } catch {
            state.withLock { $0 = .idle }
            for claim in taken { claim.giveBack(forGood: false) }
            throw error
        }
    }

    /// Reads the certificates again, for connections from now on; those that exist go on. Throws `TransportError` of code
    /// `.tls`, and goes on with the old ones, when the files are no good. Does nothing without TLS.
    public func reloadCertificates() throws(TransportError) {
        let listener: WebSocketServer? = state.withLock { state in
            if case .running(let listener) = state { return listener }
            return nil
        }
        try listener?.reloadCertificates()
    }

    /// Whether clients come over TLS.
    var hasTLS: Bool {
        guard case .webSocket(_, _, .server) = transport.kind else { return false }
        return true
    }

    /// Whether it was shut down, or is just being.
    var isStopping: Bool { state.withLock { if case .stopping = $0 { true } else { false } } }

    /// Nobody is to be let in any more.
    func stopListener() -> WebSocketServer? {
        state.withLock { state in
            defer { state = .stopping }
            if case .running(let listener) = state { return listener }
            return nil
        }
    }
}
