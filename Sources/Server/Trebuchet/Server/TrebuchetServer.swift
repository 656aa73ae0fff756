internal import Bytes
package import Networking
internal import Platform
internal import Relays
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// A server of distributed actors.
///
///     let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 8080))
///     let list = TodoList(actorSystem: server.actorSystem)
///     await server.expose(list, as: "todos")
///     try await server.run()
public final class TrebuchetServer: Sendable {
    /// The lifecycle of the listener.
    private enum State {
        case idle
        case running(WebSocketServer?)
        case stopping
    }

    /// The system that the server's actors are created in.
    public let actorSystem: TrebuchetActorSystem
    private let transport: ServerTransport
    package let context: ServerContext
    package let shards: [ServerShard]
    let access: AccessPolicy
    let own: LoopbackClients
    /// Delivers the alarms of its actors; nil without a store.
    let alarms: AlarmScheduler?
    let alarmClock: AlarmClock
    let owner: (any AnyObject & Sendable)?
    /// The claims on the server's store and on that of its router.
    private let claims: [StoreOwnership]
    /// The claims of services.
    let otherClaims = Mutex<[StoreOwnership]>([])
    private let state = Mutex(State.idle)
    let stopped = StateRelay(false)
    let pageSources = Mutex<[PageSource]>([])
    /// The routes of the program, until the server has shut down.
    let httpRoutes = Mutex(RouteTree())
    /// Set when the server starts to listen.
    let servedPages = Mutex<PageRouter?>(nil)
    /// Set when the server shuts down.
    let deactivation = Mutex<Task<Void, Never>?>(nil)
    /// Indicates whether shutdown was requested, so that new clients should use another server.
    let isLeaving = Atomic<Bool>(false)
    /// The open endpoints for operators, by name.
    let endpoints = Mutex<[String: Endpoint]>([:])
    /// A counter that distributes clients of this process over the reactors.
    let nextLocal = Atomic<Int>(0)

    /// Creates a server that does not listen yet. `TrebuchetNodes` has an initializer for servers of a cluster.
    ///
    /// - Parameters:
    ///   - reactors: The number of threads for connections and actors; by default the number of processor cores.
    ///   - access: Authentication and authorization; by default every client may connect and call everything. Its rules
    ///     (`AccessPolicy.authorize`) apply to every connection, `.local` ones before `start` included.
    ///   - store: The store of the states marked `@StreamedState(persisted: true)` of exposed actors, except those with
    ///     `placement: .cluster` in a cluster. Without one, the default, these states are only in memory. The server does not close it. A store belongs to one server at a time: while another server of this process has it, `start` and
    ///     calls of actors with such states fail.
    ///   - showsErrorText: True to send text and type of non-`Codable` errors to callers, for development. By default these are
    ///     written to the log under a number, and the caller receives only the number. Callers always receive `Codable` errors and
    ///     every `TrebuchetError`.
    ///   - log: The event handler that writes the log: a `ConsoleLog` by default, for operators a `ServerLog`, or nil. It receives
    ///     events from the start on, also after `shutdown`; so it must not retain the server. `addEventHandler` adds others, which are
    ///     released when the server has shut down.
    public convenience init(
        transport: ServerTransport, reactors: Int? = nil, limits: ServerLimits = ServerLimits(),
        access: AccessPolicy = .open, store: (any StateStore)? = nil,
        showsErrorText: Bool = false, log: (any ServerEventHandler)? = ConsoleLog()
    ) {
        self.init(
            transport: transport, on: .forServer(count: reactors), limits: limits, access: access, store: store,
            showsErrorText: showsErrorText, log: log)
    }

    /// Creates a server that runs on the given reactors.
    ///
    /// - Parameters:
    ///   - owner: An object that the server retains, for tests.
    ///   - makeRouter: Creates the router to actors of other servers; none by default.
    package init(
        transport: ServerTransport, on group: ReactorGroup, holding owner: (any AnyObject & Sendable)? = nil,
        limits: ServerLimits, access: AccessPolicy, store: (any StateStore)?,
        routedBy makeRouter: ServerContext.RouterFactory? = nil, showsErrorText: Bool,
        log: (any ServerEventHandler)?
    ) {
        self.owner = owner
        self.transport = transport
        self.access = access
        let principals = limits.calls.rate.perPrincipal.map { ShardedBuckets<PrincipalName>($0) }
        let parts = ServerContext(
            reactors: group.reactors.count, limits: limits, showsErrorText: showsErrorText, routedBy: makeRouter,
            log: log)
        let system = TrebuchetActorSystem(loops: group.reactors, locals: parts.locals)
        system.serve(parts.directory, as: parts.idempotencyCache.names.instance)
        system.reportUndecodable = { [log = parts.log] value in if value.isLogged { log("\(value)") } }
        // The health of a router's store is part of the router's.
        parts.probedStore.withLock { $0 = store }
        var claims: [StoreOwnership] = []
        let failures = StoreFailureLog(parts.plainLog)
        let routed = parts.router.map { $0.store as any StateStore }
        for (store, isClustered) in [(store, false), (routed, true)] {
            guard let store else { continue }
            let claim = StoreOwnership(store, for: PersistedNamespace.name)
            claims.append(claim)
            for shard in system.shards {
                let writer = StateWriter(
                    store, claim, parts.disclosure, stateSize: limits.persistence.stateBytes,
                    eventBytes: limits.persistence.eventBytes, responseLifetime: limits.idempotency.retention,
                    reactor: shard.reactor)
                writer.didChangeHealth = failures.reporter(isClustered ? "the engine" : "the store")
                parts.locals.write(writer, on: shard, isClustered: isClustered)
            }
        }
        self.claims = claims
        actorSystem = system
        self.context = parts
        shards = zip(system.shards, group.reactors).enumerated().map { index, pair in
            let (states, reactor) = pair
            states.memory = parts.memory
            states.resumeTime = limits.streams.resumeRetention
            return ServerShard(states: states, on: reactor, index: index, context: parts, system: system)
        }
        for shard in shards {
            shard.siblings = shards
            shard.states.server = shard
            shard.principals = principals
            shard.onConnect = access.onConnect
            shard.rules = access.rules
            shard.interceptors = ServerInterceptors(access.interceptors)
        }
        let own = LoopbackClients(shards)
        self.own = own
        parts.directory.setResolver { own.route(to: $0) }
        let (clock, servers) = (AlarmClock(group.reactors[0]), shards)
        alarmClock = clock
        alarms = store.map { AlarmScheduler($0, servers, parts, clock) }
        for shard in shards {
            shard.stateWriter?.alarms = AlarmSettings(
                limits.alarms, now: { clock.now() }, didSchedule: { [weak alarms] in alarms?.didSchedule($0) })
        }
        for (shard, router) in zip(shards, parts.router?.makeShardRouters(for: shards) ?? []) { shard.router = router }
    }

    deinit { releaseReferences() }

    func releaseReferences() {
        context.directory.setResolver(nil)
        own.close()
        // Freed without the lock.
        let routes = httpRoutes.withLock { routes in
            defer { routes = RouteTree() }
            return routes
        }
        _ = routes
        alarms?.stop()
        context.router?.stop()
        context.hosting.close()
        for shard in shards { shard.reactor.run { shard.releaseReferences() } }
        actorSystem.releaseReferences()
        locals.releaseWriters()
        context.events.removeHandlersExceptLog()
        context.probedStore.withLock { $0 = nil }
        for claim in claims { claim.release() }
        for claim in otherClaims.withLock({ $0 }) { claim.release() }
    }

    package var directory: ActorDirectory { context.directory }
    var locals: LocalActors { context.locals }
    private var limits: ServerLimits { context.limits }

    /// Permits types as generic arguments of methods, in addition to the standard library's scalars, and arrays and
    /// dictionaries of them. Other types are rejected with `invalidArguments`.
    public func register(genericTypes types: any (Codable & Sendable).Type...) {
        for type in types { actorSystem.genericTypes.register(type) }
    }

    /// Decodes errors of these types when a client actor throws them. Types that a method names in `throws(…)` need no
    /// registration.
    public func register(errors types: any (Error & Decodable).Type...) {
        for type in types { context.hosting.errors.register(type) }
    }

    // MARK: Actors

    /// Exposes an actor to clients under a name, replacing an actor exposed before under that name.
    ///
    /// With a store, the actor's persisted states are loaded before this returns. Then its `activate()` runs, if it declares one and
    /// it has not run yet. If one of both fails, the actor is exposed, and calls and streams fail with the error. Each of them first
    /// tries again, and so does the server, until it succeeds. The actor belongs to this server: each server of a cluster has a
    /// separate actor of the name.
    ///
    /// - Parameter inspectable: True, the default, if the inspector shows the actor's states and the arguments of its calls. False
    ///   hides them for all actors of its type at this server.
    /// - Returns: The error with which persisted states could not be loaded yet (`internal`, `unavailable`), or that of `activate()`;
    ///   nil after success.
    @discardableResult
    public func expose<A: TrebuchetActor>(
        _ actor: A, as name: String, inspectable: Bool = true
    ) async -> TrebuchetError? {
        if !inspectable { context.hiddenTypes.insert(ActorTypes.entry(of: A.self)) }
        if !locals.mustLoad(A.self) { warnOfMemory(A.self, as: name) }
        guard locals.mustLoad(A.self) || locals.hasActivation(A.self) else {
            let old = directory.record(ActorName(name))
            directory.insert(locals.record(of: actor, name: name, holding: true, in: actorSystem))
            await removeActor(name)
            await retire(old)
            return nil
        }
        let old = directory.record(ActorName(name))
        let registration = ActorDirectory.Registration(type: ActorTypes.entry(of: A.self)) {
            [weak actorSystem, locals, loads = context.loads, activation] name in
            guard let actorSystem else { throw TrebuchetError(.unavailable, "the server was released") }
            let record = try await loads.recordingFailure(of: name) {
                try await locals.loadedRecord(of: actor, name: name, in: actorSystem)
            }
            // An exposed actor is not created again.
            guard !record.actorInstance.isDeactivated else {
                throw TrebuchetError(.unavailable, "the server has released actor '\(name)'; expose it again")
            }
            try await activation.run(record)
            return record
        }
        await locals.retirements.during(name) {
            directory.insert(ActorName(name), registration)
            await removeActor(name)
            if old?.actor !== actor { await retire(old) }
        }
        alarms?.retry()
        guard let error = await load(ActorName(name)) else { return nil }
        retryLoading(ActorName(name), registration)
        return error
    }

    /// Waits until the states of an unexposed actor are written.
    private func retire(_ record: ActorRecord?) async {
        guard let record, let persisted = record.persisted, let actor = record.actor else { return }
        // An actor with several names is persisted under the first.
        guard persisted.name == record.name else { return }
        if let error = await persisted.retire() { context.log(persisted.loss(error)) }
        (actor.id as? TrebuchetActorID).map { locals.setPersistedStates(nil, of: $0) }
    }

    /// Activates actors when they are first called: `"lists/*"` covers every name that begins with `lists/`.
    ///
    /// Names of more than 256 bytes are rejected.
    ///
    /// The `activate()` of an actor runs after its persisted states are loaded and before its first call, if it declares one
    /// (`func activate() async throws`, for at most 30 seconds). If it throws, the waiting calls fail with its error, and the next
    /// call creates another actor.
    ///
    /// With `idle`, an actor without calls and streams for that time is deactivated. First its `deactivate()` runs, if it declares
    /// one (`func deactivate() async throws`, for at most 5 seconds; an error is logged), then its persisted states are written.
    /// Calls that arrive meanwhile wait for the next actor of that name, and its streams begin a new epoch. A strong reference in
    /// server code keeps the instance alive but does not prevent a new instance from being activated under the name. `shutdown` runs
    /// the `deactivate()` of all activated actors, with `idle` or without.
    ///
    /// - Parameters:
    ///   - idle: The idle time before deactivation, exact to an eighth, at most 5 seconds. With nil, the default, actors stay.
    ///   - discarding: True to deactivate also actors with a changed `@StreamedState` that is not persisted. By default they stay
    ///     active.
    ///   - placement: Where the actor of a name lives: on each server separately, the default, or on one server of a cluster. The
    ///     others then forward their clients' calls and streams to it. All servers must expose the same, and the coordination
    ///     store has the persisted states.
    ///   - inspectable: See `expose(_:as:inspectable:)`. True by default.
    ///   - make: Creates the actor for the whole name (`lists/42`). The caller receives the errors that it throws.
    public func expose<A: TrebuchetActor>(
        _ type: A.Type, as pattern: String, idle: Duration? = nil, discarding: Bool = false,
        placement: ActorPlacement = .node, inspectable: Bool = true,
        _ make: @escaping @Sendable (_ id: String) async throws -> A
    ) {
        precondition(pattern.utf8.last == UInt8(ascii: "*"), "pattern '\(pattern)' must end in *, such as lists/*")
        if !inspectable { context.hiddenTypes.insert(ActorTypes.entry(of: A.self)) }
        let isClustered = placement == .cluster && context.router != nil
        if !locals.mustLoad(A.self, isClustered: isClustered) { warnOfMemory(A.self, as: pattern) }
        directory.insert(
            prefix: String(pattern.dropLast()),
            ActorDirectory.Registration(
                type: ActorTypes.entry(of: A.self),
                make: { [weak actorSystem, locals, loads = context.loads, activation] name in
                    let actor = try await make(name)
                    guard let actorSystem else { throw TrebuchetError(.unavailable, "the server was released") }
                    let record = try await loads.recordingFailure(of: name) {
                        try await locals.loadedRecord(of: actor, name: name, in: actorSystem, isClustered: isClustered)
                    }
                    try await activation.run(record, releasingStatesIn: locals)
                    return record
                }, idle: idle.map { IdlePolicy(time: $0, discards: discarding) },
                isClustered: isClustered))
        alarms?.retry()
    }

    /// Removes an actor from its name. Existing streams continue while the actor exists. Its persisted states are written
    /// before this returns, and later changes are not persisted. While the store fails, this waits, and so does `expose` of
    /// another actor under the name.
    public func unexpose(_ name: String) async {
        await locals.retirements.during(name) {
            let old = directory.record(ActorName(name))
            directory.remove(ActorName(name))
            await removeActor(name)
            await retire(old)
        }
    }

    private func removeActor(_ name: String) async {
        for shard in shards { await shard.reactor.perform { shard.forget(ActorName(name)) } }
    }

    // MARK: Running

    /// The listening address; nil while the server does not listen.
    public var address: SocketAddress? {
        state.withLock { if case .running(let listener) = $0 { listener?.address } else { nil } }
    }

    /// The phase of a server's lifecycle.
    public enum Status: Sendable {
        /// It does not listen yet.
        case idle
        /// It listens and accepts connections.
        case serving
        /// Shutdown has begun: it accepts no more connections, and in-flight calls complete.
        case draining
        /// It has ended: its port is free, and its connections are closed.
        case stopped
    }

    /// The current phase. Remotely, `GET /healthz` is answered 200 while the server serves.
    public var status: Status {
        state.withLock { state in
            switch state {
            case .idle: .idle
            case .running: .serving
            case .stopping: stopped.currentValue ? .stopped : .draining
            }
        }
    }

    /// Starts listening, and returns the address. Throws `TransportError`, for example `addressInUse`; `StateStoreError` of code
    /// `inUse` if another server of this process uses the store; in a cluster, the error of a coordination store that is unreachable.
    ///
    /// SIGPIPE is ignored from then on, unless the program has a handler for it, so that a closed log reader does not end the
    /// server.
    @discardableResult
    public func start() async throws -> SocketAddress {
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
        var acquired: [StoreOwnership] = []
        do {
            for claim in claims { if try claim.acquire() { acquired.append(claim) } }
            // After a data loss the account keys belong to no account, so a server with accounts must not continue.
            try await context.router?.start(self, mayContinue: access.accountsProblem == nil)
            let pages = PageRouter(pageSources.withLock { $0 }, limits.pages)
            servedPages.withLock { $0 = pages }
            let listener = try WebSocketConnections.listen(
                transport, shards: shards, parts: context, access: access, pages: pages,
                routes: httpRoutes.withLock { $0 })
            state.withLock { $0 = .running(listener) }
            alarms?.start()
            if let writer = shards.first?.stateWriter { Task { await writer.scheduleDeletionOfEarlierResponses() } }
            let (log, events) = (context.plainLog, context.events)
            for shard in shards {
                shard.reactor.onStall = { stall in
                    log("\(stall)")
                    events.emit(
                        .reactorStalled(
                            reactor: stall.reactor, by: stall.activity, milliseconds: stall.milliseconds,
                            isOver: stall.isOver))
                }
            }
            return listener.address
        } catch {
            state.withLock { $0 = .idle }
            for claim in acquired { claim.release(permanently: false) }
            throw error
        }
    }

    /// Reloads the certificates for new connections of clients and other servers; existing connections continue. If the files are invalid,
    /// throws `TransportError` of code `.tls` and keeps the old ones. Does nothing without certificate files.
    public func reloadCertificates() throws(TransportError) {
        let listener: WebSocketServer? = state.withLock { state in
            if case .running(let listener) = state { return listener }
            return nil
        }
        try listener?.reloadCertificates()
        try context.router?.reloadCertificates()
    }

    /// Indicates whether the server uses TLS.
    var hasTLS: Bool { transport.tls != nil }

    /// Indicates whether shutdown has begun or completed.
    var isStopping: Bool { state.withLock { if case .stopping = $0 { true } else { false } } }

    /// Stops admission and returns the listener.
    func stopListener() -> WebSocketServer? {
        state.withLock { state in
            defer { state = .stopping }
            if case .running(let listener) = state { return listener }
            return nil
        }
    }
}

/// The placement of the actors of a pattern.
public enum ActorPlacement: Sendable {
    /// Each server has a separate actor per name.
    case node
    /// One server of a cluster has the actor of a name; without a cluster, the same as `node`.
    case cluster
}
