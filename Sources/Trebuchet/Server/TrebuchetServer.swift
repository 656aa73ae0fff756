public import Distributed
public import Networking
internal import Relays
internal import Synchronization
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

    public let actorSystem: TrebuchetActorSystem
    private let transport: TrebuchetTransport
    let directory: ActorDirectory
    let shards: [ServerShard]
    private let limits: ServerLimits
    private let access: AccessPolicy
    private let state = Mutex(State.idle)
    private let stopped = StateRelay(false)
    private let nextLocal = Atomic<Int>(0)

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - reactors: threads that connections and actors live on; as many as the machine has cores by default.
    ///   - access: who may connect; anybody by default.
    ///   - store: keeps the states marked `@StreamedState(persisted: true)` of exposed actors. Without one, the default,
    ///     they live in memory as all others. The server does not close it.
    public init(
        transport: TrebuchetTransport, reactors: Int? = nil, limits: ServerLimits = ServerLimits(),
        access: AccessPolicy = .open, store: (any StateStore)? = nil
    ) {
        self.transport = transport
        self.limits = limits
        self.access = access
        let principals = limits.callsPerPrincipalRate.map { PrincipalBuckets($0) }
        let group = ReactorGroup.forServer(count: reactors)
        let system = TrebuchetActorSystem(reactors: group.reactors)
        let directory = ActorDirectory(actorsOnDemand: limits.actorsOnDemand)
        system.serve(directory)
        if let store {
            for shard in system.shards {
                shard.writer = StateWriter(store, stateSize: limits.persistedStateSize, reactor: shard.reactor)
            }
        }
        actorSystem = system
        self.directory = directory
        let answers = RememberedAnswers(reactors: system.shards.count, limits: limits)
        shards = system.shards.enumerated().map { index, states in
            ServerShard(
                states: states, index: index, directory: directory, answers: answers, limits: limits, system: system)
        }
        for shard in shards {
            shard.siblings = shards
            shard.principals = principals
            shard.onConnect = access.onConnect
        }
    }

    /// Asks `mayCall` before each call and each stream: who calls, which actor, and which method or stream
    /// (`addTodo(title:)`, `observeState`). False is answered `unauthorized`, or `unauthenticated` to a caller without a
    /// principal. Set it before the server starts; it runs on reactors and must not block.
    public func authorize(
        _ mayCall: @escaping @Sendable (_ caller: Caller?, _ actorID: String, _ target: String) -> Bool
    ) {
        precondition(address == nil, "authorize before the server starts")
        for shard in shards { shard.mayCall = mayCall }
    }

    // MARK: Actors

    /// Lets clients call and observe an actor under a name. An actor exposed before under that name gives way.
    ///
    /// With a store, the actor's persisted states are loaded before this returns. When that fails, calls and streams get
    /// the error; each first tries to load again.
    public func expose<A: DistributedActor>(_ actor: A, as name: String) async
    where A.ActorSystem == TrebuchetActorSystem {
        guard actorSystem.mustLoad(A.self) else {
            let old = directory.record(name)
            directory.insert(actorSystem.record(of: actor, name: name, holding: true))
            await forget(name)
            await retire(old)
            return
        }
        let old = directory.record(name)
        let system = actorSystem
        directory.insert(name) { [weak system] name in
            guard let system else { throw TrebuchetError(.unavailable, "the server is gone") }
            return try await system.loadedRecord(of: actor, name: name)
        }
        await forget(name)
        if old?.actor !== actor { await retire(old) }
        _ = try? await directory.activate(name)?.value
    }

    /// Waits until the states of an actor that is out of reach are written.
    private func retire(_ record: ActorRecord?) async {
        guard let record, let persisted = record.persisted, let actor = record.actor else { return }
        // Under another name as well, it is kept under the first.
        guard persisted.name == record.name else { return }
        await persisted.retire()
        (actor.id as? TrebuchetActorID).map { actorSystem.setPersistedStates(nil, of: $0) }
    }

    /// Makes actors when they are first called: `"lists/*"` stands for every name that begins with `lists/`.
    ///
    /// - Parameter make: makes the actor for the whole name (`lists/42`). What it throws, the caller gets.
    public func expose<A: DistributedActor>(
        _ type: A.Type, as pattern: String, _ make: @escaping @Sendable (_ id: String) async throws -> A
    ) where A.ActorSystem == TrebuchetActorSystem {
        precondition(pattern.hasSuffix("*"), "pattern '\(pattern)' must end in *, as lists/*")
        let system = actorSystem
        directory.insert(prefix: String(pattern.dropLast())) { [weak system] name in
            let actor = try await make(name)
            guard let system else { throw TrebuchetError(.unavailable, "the server is gone") }
            return try await system.loadedRecord(of: actor, name: name)
        }
    }

    /// Takes an actor out of reach. Streams of those who observe it go on while the actor lives.
    /// Its persisted states are written before this returns, and are not kept from then on.
    public func unexpose(_ name: String) async {
        let old = directory.record(name)
        directory.remove(name)
        await forget(name)
        await retire(old)
    }

    private func forget(_ name: String) async {
        for shard in shards { await shard.reactor.perform { shard.forget(name) } }
    }

    // MARK: Running

    /// The address that it listens on; nil while it does not.
    public var address: SocketAddress? {
        state.withLock { if case .running(let listener) = $0 { listener?.address } else { nil } }
    }

    /// Begins to listen, and returns the address. Throws `TransportError`, `addressInUse` for one.
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
        do {
            let listener = try WebSocketSessions.listen(
                host: host, port: port, security, compression: transport.compression, shards: shards, limits: limits,
                access: access)
            state.withLock { $0 = .running(listener) }
            return listener.address
        } catch {
            state.withLock { $0 = .idle }
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

    /// Listens and serves until its task is cancelled or `shutdown` is called; then it drains and returns. A server that
    /// was shut down before has nothing to run.
    public func run() async throws {
        let isStopping = state.withLock { if case .stopping = $0 { true } else { false } }
        if address == nil, !isStopping { try await start() }
        for await isStopped in stopped.stream where isStopped { return }
        await shutdown()
    }

    /// Stops: accepts no more connections, tells clients to go (`goAway`), lets calls under way end for at most
    /// `drain`, and closes the connections with 1001.
    public func shutdown(drain: Duration = .seconds(10)) async {
        let listener: WebSocketServer? = state.withLock { state in
            defer { state = .stopping }
            if case .running(let listener) = state { return listener }
            return nil
        }
        // Not cancelled with the task that asks for it: clients are to be told in any case.
        await Task {
            await listener?.stopAccepting()
            await listener?.refuseUpgrades()
            await withTaskGroup(of: Void.self) { group in
                for shard in shards { group.addTask { await shard.drain(for: drain) } }
            }
            for shard in shards { await shard.states.writer?.flush() }
            stopped.update(true)
        }.value
    }

    // MARK: Clients in this process

    func connectLocally(_ core: ClientCore, attempt: Int) async throws {
        if state.withLock({ if case .stopping = $0 { true } else { false } }) {
            throw TransportError(.closed, "the server was shut down")
        }
        var caller: Caller?
        if !access.isOpen {
            // As if it came over the network, but from no origin and no address.
            var headers = HTTPHeaders()
            if let authorization = try await core.options.authorization { headers.add("Authorization", authorization) }
            do {
                caller = try await access.caller(HTTPRequestHead(target: "/", headers: headers), from: nil)
            } catch let denied as AccessDenied {
                throw TransportError(.handshake, "the server refuses the client: \(denied)")
            }
        }
        let index = nextLocal.wrappingAdd(1, ordering: .relaxed).oldValue
        let shard = shards[index % shards.count]
        let connection = LocalConnection(shard, core: core, number: attempt)
        await shard.reactor.perform { [caller] in connection.open(shard, caller: caller) }
        await core.reactor.perform { core.connection.opened(connection.clientEnd, number: attempt) }
    }

    // MARK: Looking inside

    /// How many answers of `@Idempotent` calls are kept now.
    package var rememberedAnswerCount: Int { shards[0].answers.count }

    /// How many streams carry a state of an exposed actor over the network now.
    package func subscriberCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.subscriberCount ?? 0
    }

    /// How many versions of a state of an exposed actor were encoded so far.
    package func encodeCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.encodeCount ?? 0
    }

    /// On how many reactors, and for how many versions of the protocol, a state is kept ready.
    package func nodeCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.nodeCount ?? 0
    }

    /// How many different filters look at a state of an exposed actor.
    package func filterCount(of name: String, _ stream: String) async -> Int {
        (await source(of: name, stream) as? any FilterableSource)?.filters.current.count ?? 0
    }

    private func source(of name: String, _ stream: String) async -> (any AnyStateSource)? {
        guard let record = directory.record(name) else { return nil }
        return await withCheckedContinuation { continuation in
            record.executeStreamingTarget(stream) { continuation.resume(returning: $0) }
        }
    }

    /// Connections that are open now.
    public var connectionCount: Int {
        get async {
            var count = 0
            for shard in shards { count += await shard.reactor.perform { shard.sessions.count } }
            return count
        }
    }
}
