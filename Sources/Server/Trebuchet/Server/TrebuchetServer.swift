internal import Bytes
internal import Distributed
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
    /// Deliver the alarms of its actors, one for each store.
    let alarms: [AlarmScheduler]
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
    /// The times at which certificates in use expire, for metrics.
    package let certificates = CertificateExpiries()
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
        let principalBuckets = limits.calls.rate.perPrincipal.map { ShardedBuckets<PrincipalName>($0) }
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
            shard.principalBuckets = principalBuckets
            shard.onConnect = access.onConnect
            shard.rules = access.rules
            shard.interceptors = ServerInterceptors(access.interceptors)
        }
        let own = LoopbackClients(shards)
        self.own = own
        parts.directory.setResolver { own.route(to: $0) }
        let (clock, servers) = (AlarmClock(group.reactors[0]), shards)
        alarmClock = clock
        let stored = store.map { AlarmScheduler(StoredAlarmRows(store: $0), servers, parts, clock) }
        let clustered = parts.router.flatMap { router in
            router.alarmRows.map { AlarmScheduler($0, of: router, servers, parts, clock) }
        }
        alarms = [stored, clustered].compactMap { $0 }
        for shard in shards {
            for (writer, scheduler) in [(shard.stateWriter, stored), (shard.clusteredWriter, clustered)] {
                guard let writer, let scheduler else { continue }
                writer.alarms = AlarmSettings(
                    limits.alarms, now: { clock.now() },
                    didSchedule: { [weak scheduler] in scheduler?.didSchedule($0) })
            }
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
        for scheduler in alarms { scheduler.stop() }
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
        for scheduler in alarms { scheduler.retry() }
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
        for scheduler in alarms { scheduler.retry() }
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
            if let tls = transport.tls { certificates.read(tls.certificateChainFile, of: "clients") }
            for scheduler in alarms { scheduler.start() }
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

    /// Reloads the certificates for new connections of clients, other servers and operators; existing connections continue. If the
    /// files are invalid, throws `TransportError` of code `.tls` and keeps the old ones. Does nothing without certificate files.
    public func reloadCertificates() throws(TransportError) {
        let listener: WebSocketServer? = state.withLock { state in
            if case .running(let listener) = state { return listener }
            return nil
        }
        defer { certificates.readAgain() }
        try listener?.reloadCertificates()
        try context.router?.reloadCertificates()
        for endpoint in endpoints.withLock({ Array($0.values) }) { try endpoint.listener.reloadCertificates() }
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

/// Loading of persisted states before the first call.
extension TrebuchetServer {
    /// Loads an exposed actor. Returns the error of its calls if that fails.
    func load(_ name: ActorName) async -> TrebuchetError? {
        do {
            _ = try await directory.activate(name, for: nil)?.value
            return nil
        } catch {
            let cause = CallerRefusal.cause(of: error)
            return cause as? TrebuchetError ?? TrebuchetError(.internal, "\(cause)")
        }
    }

    /// The delays between attempts to load an actor that is exposed by its name.
    private static let loadBackoff = Backoff(first: .seconds(1), limit: .seconds(10))

    /// Retries to load an actor until that succeeds, the name is exposed again, or the server ends.
    func retryLoading(_ name: ActorName, _ registration: ActorDirectory.Registration) {
        Task { [weak self] in
            var failures = 1
            while true {
                try? await Task.sleep(for: Self.loadBackoff.delay(afterFailures: failures))
                guard let self, !isStopping, directory.isUnloaded(name, registration), await load(name) != nil else {
                    return
                }
                failures += 1
            }
        }
    }

    /// Logs that persistable states are only in memory, at a server of a cluster without its own store: the coordination store has
    /// the states of cluster actors only. A server without any store does not log it.
    func warnOfMemory<A: TrebuchetActor>(_ type: A.Type, as name: String) {
        guard context.router != nil, locals.persists(type) else { return }
        context.logAt(
            .warning,
            "actor '\(name)' has persisted states, but this server has no store for its own actors: the states are lost when the "
                + "process ends; pass a store (trebuchet serve --data FILE), or expose the actor by a pattern with "
                + "placement: .cluster")
    }
}

extension TrebuchetServer {
    /// Deactivates an activated actor that is unused, as soon as it has no in-flight call. Later calls and streams, including those
    /// in transit from other reactors, reach the next actor of that name. Returns when this is decided.
    ///
    /// - Parameters:
    ///   - isUnused: Evaluated on the actor until it is false or no call is in flight.
    ///   - finish: Runs on the actor before the next one of its name may be activated; its argument is true if the actor is
    ///     deactivated.
    package func deactivateActor<A: DistributedActor>(
        _ actor: A, named name: String, if isUnused: @escaping @Sendable (isolated A) -> Bool,
        _ finish: @escaping @Sendable (isolated A, Bool) -> Void
    ) async where A.ActorSystem == TrebuchetActorSystem {
        let (instance, parts) = (actorSystem.instance(of: actor.id), context)
        for attempt in 1...Self.deactivationAttempts {
            let isDone = await actor.whenLocal { actor in
                guard isUnused(actor), attempt < Self.deactivationAttempts else {
                    finish(actor, false)
                    return true
                }
                // From here on no call is admitted; an actor without a record gets none.
                guard instance.close() else { return false }
                finish(actor, true)
                if let record = parts.directory.record(ActorName(name)), record.actor === actor {
                    record.home?.serverShard?.didDeactivate(record)
                }
                return true
            }
            if isDone != false { return }
            await pause(behind: attempt)
        }
    }

    /// A call that runs longer checks at its end whether the actor is still needed.
    private static var deactivationAttempts: Int { 1_000 }

    /// The call that requested the deactivation may be about to end, but its thread may not be scheduled. A stream that does
    /// not start has no such check at its end. Later attempts therefore wait, for more than a minute in total.
    private func pause(behind attempt: Int) async {
        guard attempt > 32 else { return await Task.yield() }
        try? await Task.sleep(for: .milliseconds(min(attempt - 32, 100)))
    }

    /// Runs `deactivate()` of all activated actors concurrently, each with the time limit of an idle actor, and waits for
    /// deactivations that have started. Runs once, however often the server is shut down.
    func deactivateActors() async {
        let deactivation = deactivation.withLock { deactivation in
            let running = deactivation ?? Task { await self.deactivateNow() }
            deactivation = running
            return running
        }
        await deactivation.value
    }

    private func deactivateNow() async {
        for shard in shards {
            await shard.reactor.perform {
                shard.isEnding = true
                shard.idleWatch = IdleActorTracker()
            }
        }
        let (records, deactivating) = context.directory.onDemand
        await withTaskGroup(of: Void.self) { group in
            for record in records where record.hasDeactivation && !record.actorInstance.isDeactivated {
                let loop = record.home?.reactor ?? shards[0].reactor
                group.addTask { [context] in
                    do {
                        try await TimeLimit.run(ServerShard.deactivation, on: loop) { try await record.deactivate() }
                    } catch {
                        context.log(
                            "the server is shutting down, and the deactivate() of actor '\(record.name)' failed: \(error)"
                        )
                    }
                }
            }
            for task in deactivating {
                group.addTask { [reactor = shards[0].reactor] in
                    try? await TimeLimit.run(ServerShard.deactivation, on: reactor) { await task.value }
                }
            }
        }
    }
}

/// Authorization that changes while the server runs.
extension TrebuchetServer {
    /// Replaces the closure that the server was created with (`AccessPolicy.authorize`), for existing connections too.
    ///
    /// When it returns, every reactor evaluates the new closure before each call and each new stream, and authorization caches
    /// of the earlier one are invalid. Streams that the new closure rejects end with an error, in batches of connections right
    /// after that. Calls that have started continue; calls that wait for the activation of their actor are decided again. The rules
    /// file of collections and rooms is another thing: see
    /// `replaceRules` of the services.
    ///
    /// In a cluster each server has a separate closure: replace it at each. The closure of the client's server decides when a shared
    /// stream, sent once to that server for all its clients, ends.
    ///
    /// - Precondition: The server was created with `AccessPolicy.authorize`. Otherwise it would run without authorization until
    ///   this call.
    /// - Parameters:
    ///   - cachesGrants: Whether decisions are cached; see `AccessPolicy.cachesGrants`. Default false.
    ///   - authorize: The new closure; see `AccessPolicy.authorize`.
    public func replaceAuthorization(cachesGrants: Bool = false, _ authorize: @escaping AccessPolicy.Authorize) async {
        precondition(
            access.authorize != nil,
            "replaceAuthorization requires a server that was created with AccessPolicy.authorize")
        let rules = AccessRules(mayCall: authorize, cachesGrants: cachesGrants)
        for shard in shards { await shard.reactor.perform { shard.replaceRules(rules) } }
    }

    /// Invalidates earlier decisions of `AccessPolicy.authorize`. Call it when the closure's decisions change.
    ///
    /// Authorization caches (`AccessPolicy.cachesGrants`) are invalid at once. Streams that the closure now rejects end with an
    /// error, in batches of connections right after that. Calls that have started continue; calls that wait for the activation of
    /// their actor are decided again. Callable from any thread; in a cluster, at each server.
    public func invalidateAuthorizationCache() {
        context.rules.add(1, ordering: .releasing)
        for shard in shards { shard.reactor.execute { shard.endRefusedStreams() } }
    }
}

extension TrebuchetServer {
    /// Returns a transport to this server for a client with the given principal. `AccessPolicy.authenticate` is skipped, and the
    /// policy still authorizes the principal's calls.
    package func localTransport(as principal: String?) -> TrebuchetTransport {
        TrebuchetTransport(.local(ImpersonatingServer(self, principal)))
    }
}

/// Connections of clients in this process.
extension TrebuchetServer: LocalServer {
    func connectLocally(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        guard !isStopping else { throw TransportError(.closed, "the server was shut down") }
        var caller: Caller?
        if !access.isOpen {
            // Authenticate like a network client, without an origin and an address.
            do {
                caller = try await access.caller(HTTPRequestHead(target: "/", headers: request.headers), from: nil)
            } catch {
                // Throw the same error as for a client over a socket.
                let (response, reason) = AccessPolicy.refusal(error, context.failedHooks)
                throw TransportError(
                    .handshake, "the server refuses the client (\(response.status)): \(reason)",
                    cause: UnexpectedHTTPStatus(response.status))
            }
        }
        try await connectLocally(request, receiver, as: caller)
    }

    /// Connects a client whose caller is already known.
    func connectLocally(
        _ request: ConnectionRequest, _ receiver: ConnectionReceiver, as caller: Caller?
    ) async throws {
        guard !isStopping else { throw TransportError(.closed, "the server was shut down") }
        let index = nextLocal.wrappingAdd(1, ordering: .relaxed).oldValue
        let shard = shards[index % shards.count]
        let connection = LocalConnection(shard, receiver, largestMessage: request.messageSize)
        await shard.reactor.perform { [caller] in connection.open(shard, caller: caller) }
        await receiver.loop.perform { receiver.linkDidOpen(connection.clientEnd) }
    }
}

extension TrebuchetServer {
    /// Serves pages in addition to the actors, for GET and HEAD over HTTP/1.1 on the server's port:
    ///
    ///     try server.pages(.folder("public"), .clientLibrary)
    ///
    /// Earlier sources have precedence; if a folder does not have a page, later sources are tried. A page that no source has is
    /// answered 404. A server without pages answers 426, like a pure WebSocket server.
    ///
    /// All clients that reach the port may read pages: `AccessPolicy.authenticate` applies only to connections to actors.
    /// `AccessPolicy.origins` applies to pages too. `ServerLimits.pages` has the limits.
    ///
    /// Call it before the server starts.
    public func servePages(_ sources: PageSource...) { servePages(sources) }

    /// Serves pages from a list of sources.
    public func servePages(_ sources: [PageSource]) {
        precondition(status == .idle, "add pages before the server starts")
        pageSources.withLock { $0 += sources }
    }

    /// The clients that may read `/schema.json`.
    public enum SchemaReaders: Sendable {
        /// Clients on this machine that use a loopback name (`localhost`, 127.0.0.1, `[::1]`) and no proxy. A proxy is
        /// recognized if it is one of `AccessPolicy.trustedProxies`, or adds `X-Forwarded-For`, `Forwarded` or `Via`. Another
        /// proxy on this machine cannot be recognized.
        case localClients
        /// All clients that reach the port.
        case allClients
    }

    /// Serves `/schema.json`: the names of exposed actors, their types, and the methods, states and events of each type, as far
    /// as dispatch tables list them. Other clients get 404. Without this call a server publishes no schema; call it before the
    /// server starts.
    public func serveSchema(to readers: SchemaReaders) {
        let directory = context.directory
        let page = MemoryPage(
            type: "application/json; charset=utf-8",
            isFor: { request in
                switch readers {
                case .localClients: ServerSchema.isOfLocalClient(request)
                case .allClients: true
                }
            },
            body: { ServerSchema(directory.exposedTypes).json })
        guard let path = try? PageSource.parsePath("/schema.json") else { return }
        servePages(PageSource(kind: .page(page, path: path)))
    }

    /// The number of files that are open because they are being sent.
    package var openPageCount: Int { servedPages.withLock { $0?.open.count ?? 0 } }
}
