package import Bytes
package import Networking
internal import Platform
internal import Synchronization
internal import Transports
package import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// The part of a server on one reactor: its connections, the actors they have called, and the memory that all calls share.
///
/// `@unchecked Sendable`: isolated to its reactor.
package final class ServerShard: @unchecked Sendable {
    package let states: SystemShard
    package let reactor: Reactor
    package let context: ServerContext
    /// The properties of `states` and `context`, with one indirection less for each call.
    let counts: ShardMetrics
    let events: EventBus
    /// Used in one step each time, so access to it needs no check.
    @exclusivity(unchecked) var run = CallRun()
    let observer: ServerObserver
    /// Indicates whether a timer removes expired recorded responses.
    var willForgetResponses = false
    /// The number of its reactor.
    package let index: Int
    unowned let system: TrebuchetActorSystem
    /// The coder of `states`. Each call uses it, read in one step, so access to it needs no check.
    @exclusivity(unchecked) private(set) var coder: ValueCoder
    /// The storage for scanned messages. Taken and given back in one step each, so access to it needs no check.
    @exclusivity(unchecked) var scans = EnvelopeScratchStack()
    /// The memory that `reply` keeps for the next result after a large one.
    static let retainedReplyCapacity = 256 << 10
    /// The result of the current call.
    let reply = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// The connections by the numbers of their names.
    package private(set) var connections: [UInt64: ServerConnection] = [:]

    /// The shards of the same server on all reactors, this one included, until the server has shut down. Set before the server
    /// listens.
    var siblings: [ServerShard] = []
    /// The rules of the server's `AccessPolicy`: set before any connection exists, or never. They may be replaced, on this reactor.
    var rules: AccessRules? { didSet { if rules != nil { isGuarded = true } } }
    var helpers = DelegatedAuthorization()
    /// The interceptors of the server's `AccessPolicy`; nil without any. Set before any connection exists.
    var interceptors: ServerInterceptors? { didSet { if interceptors != nil { isGuarded = true } } }
    /// Set before the server listens.
    var principalBuckets: ShardedBuckets<PrincipalName>?
    var onConnect: (@Sendable (CallerConnection) -> Void)?
    /// Indicates whether all calls need checks before they run. Those of methods with a rate need them in each case.
    private(set) var isGuarded: Bool

    /// Actors by name, as they were found before. The table of the hot path counts no references; `retainedActors` retains them. Lookups and
    /// changes call no code that accesses it, so access to it needs no check.
    @exclusivity(unchecked) private var records = ByteKeyTable<Unmanaged<ActorRecord>>()
    private var retainedActors: [ActorName: ActorRecord] = [:]
    /// The time when the shard last removed an actor that may live on another server now; 0 for never.
    package private(set) var lastClusteredRemoval: UInt64 = 0
    /// Calls that wait for an activation.
    private var waiting: [ActorName: ActivationQueue] = [:]
    /// Calls of methods that may suspend, until they do.
    let calls: CallQueue
    /// Responses that wait for streams of their connections.
    let responseBarriers: ResponseBarriers
    /// The time slice in nanoseconds in which a response brings the streams of its connection up to date.
    var catchUpTime: UInt64 = 500_000
    /// The number of time slices that held responses have used.
    var catchUpSteps = 0
    /// The router's part on this reactor; nil without a router, and after shutdown. Set before the server listens, and read in one
    /// step, so access needs no check.
    @exclusivity(unchecked) package internal(set) var router: (any ShardRouter)?
    /// The number of connections that are not of this server's clients: the server's own, and those of clients at other servers.
    private var foreignCount = 0
    var idleWatch = IdleActorTracker()
    var isWatchingIdle = false
    /// Indicates whether all present connections have been sent `goAway`, or are being sent it.
    var isDraining = false
    /// Indicates whether the server shuts down, which deactivates all actors.
    var isEnding = false
    /// The time of the last pong after `goAway`, or of the last call on a draining connection. Nanoseconds of the reactor's clock.
    var lastLateMessage: UInt64 = 0
    /// The pause between two checks, from the shortest time of a policy.
    var idlePause: Duration?
    /// Responses of calls that arrived on other reactors, until the turn ends.
    var outgoing: [OutgoingResponses] = []
    /// The withdrawn call of the message that its connection is handling again.
    var continued: (call: InFlightCall, connection: ServerConnection)?
    var hasOutgoing = false
    var spareBatches = SpareCrossReactorBatches()

    init(states: SystemShard, on reactor: Reactor, index: Int, context: ServerContext, system: TrebuchetActorSystem) {
        counts = states.counts
        events = context.events
        states.events = context.events
        self.index = index
        self.context = context
        self.states = states
        self.reactor = reactor
        calls = CallQueue(states)
        observer = ServerObserver(
            context.events, states.counts, context.directory, hiding: context.hiddenTypes)
        responseBarriers = ResponseBarriers(on: reactor)
        isGuarded = context.limits.calls.rate.limitsAllCalls
        self.system = system
        coder = states.coder
        reply.initialize(to: ByteBuffer())
    }

    deinit {
        reply.deinitialize(count: 1)
        reply.deallocate()
    }

    package var directory: ActorDirectory { context.directory }
    package var limits: ServerLimits { context.limits }
    var idempotencyCache: ServerIdempotencyCache { context.idempotencyCache }
    /// The writer of states of the server's own actors on this reactor; nil at a server without a store.
    var stateWriter: StateWriter? { context.locals.writer(on: states) }
    /// The writer of states of actors that live on one server of several; nil at a server without a router.
    package var clusteredWriter: StateWriter? { context.locals.writer(on: states, isClustered: true) }
    /// Indicates whether any actors of this reactor are persisted.
    var persistsStates: Bool { context.locals.persistsStates(on: states) }
    var writers: [StateWriter] { context.locals.writers(on: states) }

    /// Returns the shard of the same server on another reactor.
    func sibling(on states: SystemShard) -> ServerShard? { siblings.first { $0.states === states } }

    func addConnection(_ connection: ServerConnection) {
        if connection.isServer || connection.upstream != nil { foreignCount += 1 }
        connections[connection.name.number] = connection
    }
    func remove(_ connection: ServerConnection) {
        if let removed = connections.removeValue(forKey: connection.name.number),
            removed.isServer || removed.upstream != nil
        {
            foreignCount -= 1
        }
        connection.sendReadyResponses()
    }

    /// Returns the name of a connection that will live on this reactor. May be called on any thread.
    func newConnectionName() -> CallSessionID { idempotencyCache.names.next(onReactor: index) }

    /// Removes references between the server's parts after shutdown, so that they can be freed.
    func releaseReferences() {
        siblings = []
        states.server = nil
        // Connections that still exist are authorized for nothing.
        if rules != nil { rules = AccessRules.none }
        if interceptors != nil { interceptors = ServerInterceptors.refusingAll }
        onConnect = nil
        records = ByteKeyTable()
        retainedActors = [:]
        waiting = [:]
        router?.releaseReferences()
        router = nil
        idleWatch = IdleActorTracker()
        spareBatches = SpareCrossReactorBatches()
        coder = ValueCoder()
        states.releaseCoders()
    }

    /// The number of client connections of this reactor.
    var clientCount: Int { connections.count - foreignCount }

    /// The number of calls and streams that wait for an activation.
    var waitingCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    // MARK: Actors

    /// Returns the active actor with this name.
    @inline(__always)
    func record(_ name: UnsafeRawBufferPointer) -> Unmanaged<ActorRecord>? { records[name] }

    private func retainActor(_ record: ActorRecord, as name: ActorName) {
        retainedActors[name] = record
        records[name.text] = .passUnretained(record)
    }

    /// Returns the place of a name that was not called before. Activates nothing.
    package func location(of name: ActorName) -> ActorLocation {
        if let router = context.router, let type = directory.clusteredType(of: name), !router.owns(name.text) {
            return .elsewhere(type)
        }
        if waiting[name] == nil,
            let record = directory.record(name) ?? context.locals.referredRecord(name.text, in: system)
        {
            retainActor(record, as: name)
            return .ready(record)
        }
        return directory.type(of: name).map { .inactive($0) } ?? .unknown
    }

    /// Returns whether the errors of a method must not be logged with their descriptions.
    func hidesErrors(of method: ActorMethod, _ type: ActorType) -> Bool {
        method.isRedacted || context.hiddenTypes.contains(type)
    }

    /// Returns the type of the actor with this name; nil for an unknown name. Activates nothing.
    func type(of name: ActorName) -> ActorType? {
        directory.type(of: name) ?? context.locals.referredRecord(name.text, in: system)?.type
    }

    /// Activates the actor of a name, and calls `resume` on this reactor with its record, after earlier calls for the same name.
    ///
    /// - Parameters:
    ///   - scopes: the quota scopes of the caller.
    ///   - byteCount: the size of the waiting message.
    func awaitActor(
        _ name: ActorName, for scopes: QuotaScopes, byteCount: Int = 0,
        _ resume: @escaping (Result<ActorRecord, any Error>) -> Void
    ) -> ActivationWaiter? {
        let isLarge = byteCount > MessageReader.largeMessage
        if let queue = waiting[name] { return queue.addWaiter(for: scopes, isLarge: isLarge, resume) }
        do {
            try startActivation(name, for: scopes)
        } catch {
            resume(.failure(CallerRefusal.cause(of: error)))
            return nil
        }
        let queue = ActivationQueue()
        waiting[name] = queue
        return queue.addWaiter(for: scopes, isLarge: isLarge, resume)
    }

    /// The pause before waiting calls look up the owner of an actor that moved while it was loaded.
    private static let movedPause = Duration.milliseconds(20)

    /// Activates the actor for the first caller of a queue. If the activation is refused for that caller only, its calls fail, and the
    /// actor is activated for the next one.
    private func activate(_ name: ActorName, for queue: ActivationQueue) {
        guard let scopes = queue.nextScopes else {
            waiting[name] = nil
            return
        }
        do {
            try startActivation(name, for: scopes)
        } catch let refusal as CallerRefusal {
            refuse(queue, name, refusal)
            // In a later turn: there may be many callers without quota.
            let queue = LoopBound(queue, on: reactor)
            reactor.execute { self.activate(name, for: queue.value) }
        } catch {
            waiting[name] = nil
            resume(queue, name, .failure(error))
        }
    }

    /// Fails the calls of the callers that a refusal concerns, in a later turn: no code of a caller runs here.
    private func refuse(_ queue: ActivationQueue, _ name: ActorName, _ refusal: CallerRefusal) {
        let refused = queue.removeWaiters(refusedBy: refusal)
        guard refused.count > 0 else { return }
        refused.resumeLater(on: reactor) { isLongStep in
            self.resume(refused, name, .failure(refusal.cause), isLongStep: isLongStep)
        }
    }

    private func startActivation(_ name: ActorName, for scopes: QuotaScopes) throws {
        if let router = context.router, directory.clusteredType(of: name) != nil, !router.owns(name.text) {
            throw ActorMoved.error
        }
        guard let activation = try directory.activate(name, for: scopes, on: reactor) else {
            throw ActorDirectory.notExposed(name)
        }
        let reactor = reactor
        Task {
            let outcome = await activation.result
            guard case .failure(let error) = outcome, ActorMoved.isIt(error) else {
                return reactor.execute { self.activated(name, outcome) }
            }
            // The owner may not be known yet; the pause avoids repeated lookups.
            reactor.execute { _ = reactor.schedule(after: Self.movedPause) { self.activated(name, outcome) } }
        }
    }

    /// The time in nanoseconds for the calls of one actor that are resumed in a turn.
    private static let resumptionTime: UInt64 = 100_000

    private func activated(_ name: ActorName, _ outcome: Result<ActorRecord, any Error>) {
        guard let queue = waiting[name] else { return }
        if case .success(let record) = outcome {
            didActivate(record)
        } else if case .failure(let error) = outcome, let refusal = error as? CallerRefusal {
            refuse(queue, name, refusal)
            return activate(name, for: queue)
        } else {
            // Later calls try again.
            waiting[name] = nil
        }
        resume(queue, name, outcome)
    }

    /// Counts an activation, and watches the actor for idleness.
    func didActivate(_ record: ActorRecord) {
        counts.count(.actorsActivated)
        if events.isEnabled(for: .actors) { events.emit(.actorActivated(name: record.name, type: record.type.name)) }
        watchIdle(record)
    }

    /// Resumes waiting calls. While some wait, later calls queue behind them: calls keep their order.
    private func resume(
        _ queue: ActivationQueue, _ name: ActorName, _ outcome: Result<ActorRecord, any Error>, isLongStep: Bool = false
    ) {
        var slice = TimeSlice(budget: Self.resumptionTime, from: MonotonicClock.now)
        let isIncomplete = queue.resume(isLongStep: isLongStep, outcome) {
            slice.isCheckDue() && slice.isUsedUp(lastClockReading: &reactor.lastClockReading)
        }
        if isIncomplete {
            guard case .success(let record) = outcome, record.actorInstance.isDeactivated else {
                return queue.resumeLater(on: reactor) { isLongStep in
                    self.resume(queue, name, outcome, isLongStep: isLongStep)
                }
            }
            // Earlier calls have ended the actor; the others wait for the next one with its name.
            return activate(name, for: queue)
        }
        guard waiting[name] === queue, case .success(let record) = outcome else { return }
        waiting[name] = nil
        if directory.record(name) === record { retainActor(record, as: name) }
    }

    /// Removes an actor, so that the next call for this name looks it up again.
    func forget(_ name: ActorName) {
        records[name.text] = nil
        // Released when the turn ends: this may be executed within a call of this actor.
        guard let record = retainedActors.removeValue(forKey: name) else { return }
        reactor.execute { _ = record }
    }

    /// Removes an actor, unless another one has its name by now.
    package func forget(_ record: ActorRecord) {
        let name = ActorName(record.name)
        if retainedActors[name] === record { forget(name) }
        if record.isClustered { lastClusteredRemoval = reactor.now }
    }
}

/// The place of the actor with a name.
package enum ActorLocation {
    case ready(ActorRecord)
    /// An actor that the first call activates.
    case inactive(ActorType)
    /// An actor that lives on another server.
    case elsewhere(ActorType)
    case unknown

    var record: ActorRecord? { if case .ready(let record) = self { record } else { nil } }

    var type: ActorType? {
        switch self {
        case .ready(let record): record.type
        case .inactive(let type), .elsewhere(let type): type
        case .unknown: nil
        }
    }

    /// Indicates whether this server handles calls of the name.
    var isOnThisServer: Bool { if case .elsewhere = self { false } else { true } }
}

/// The state that all reactors of a server share.
package final class ServerContext: Sendable {
    let limits: ServerLimits
    let limitsOfClient: ConnectionLimits
    let limitsOfServer: ConnectionLimits
    /// The types whose states and arguments the inspector does not show.
    let hiddenTypes = ActorTypeSet()
    /// The types of which an idle actor has stayed active because of a change that is not persisted.
    let retainedTypes = ActorTypeSet()
    /// Indicates whether the server has any rate of calls.
    let hasRates: Bool
    /// The names of methods and streams with a rate, in any type.
    private let ratedNames: Set<String>
    package let directory: ActorDirectory
    /// The actors that were created in the server's system, exposed or not.
    package let locals = LocalActors()
    let idempotencyCache: ServerIdempotencyCache
    let quotas: QuotaLedger
    /// The budget of `ServerLimits.memory.total`.
    package let memory: MemoryBudget
    /// The server's event bus.
    let events: EventBus
    /// Writes a line to the server log. Event handlers receive it too, with the level `notice`.
    package let log: @Sendable (String) -> Void
    /// Writes a line with another level.
    package let logAt: @Sendable (ServerEvent.Level, String) -> Void
    /// Writes a line about events that handlers also receive with their fields.
    let plainLog: @Sendable (String) -> Void
    let disclosure: ErrorDisclosure
    /// The store that readiness checks query; nil without one.
    let probedStore = Mutex<(any StateStore)?>(nil)
    let hosting: ClientActorHosts
    let idleClock = IdleClock()
    /// Errors of the `activate()` of actors.
    let failedActivations: RejectionLog
    /// Errors of alarms that are tried again.
    let failedAlarms: RejectionLog
    /// Errors of `AccessPolicy.authenticate`.
    let failedHooks: RejectionLog
    let refusedSubjects: DeniedSubjectLog
    let loads: LoadFailures
    /// Incremented whenever the basis of `AccessPolicy.authorize` has changed.
    let rules = Atomic<UInt64>(0)
    /// The router to actors of other servers; nil if the server has all of its actors itself.
    package let router: (any RemoteRouter)?

    /// Creates the router of a server.
    package typealias RouterFactory = (
        EventBus, _ log: @escaping @Sendable (ServerEvent.Level, String) -> Void
    ) -> any RemoteRouter

    init(
        reactors: Int, limits: ServerLimits, showsErrorText: Bool = false, routedBy makeRouter: RouterFactory? = nil,
        log: (any ServerEventHandler)? = nil
    ) {
        self.limits = limits
        limitsOfClient = limits.ofClient
        limitsOfServer = limits.ofServer
        hasRates = !limits.calls.rate.isEmpty
        ratedNames = Set(limits.calls.rate.perMethod.keys.map(\.name))
        for method in limits.calls.rate.perMethod.keys { method.type.checkCalls(of: method.name) }
        // Sanitizes for all: names and texts of peers are in many lines.
        let events = EventBus(log: log)
        self.events = events
        plainLog = { if events.isEnabled(for: .summaries) { events.emit(.summary(LogLine.of($0))) } }
        let logAt: @Sendable (ServerEvent.Level, String) -> Void = { level, line in
            if events.isEnabled(for: .server) { events.emit(.logMessage(level, LogLine.of(line))) }
        }
        let log: @Sendable (String) -> Void = { logAt(.notice, $0) }
        (self.log, self.logAt) = (log, logAt)
        disclosure = ErrorDisclosure(showsText: showsErrorText, log: log)
        failedHooks = RejectionLog(log)
        failedActivations = RejectionLog { logAt(.error, $0) }
        failedAlarms = RejectionLog { logAt(.warning, $0) }
        refusedSubjects = DeniedSubjectLog(log)
        loads = LoadFailures(log: logAt)
        router = makeRouter?(events, logAt)
        memory = MemoryBudget(limit: limits.memory.total)
        quotas = QuotaLedger(limits: limits, memory: memory, events: events)
        directory = ActorDirectory(quotas: quotas, router: router)
        idempotencyCache = ServerIdempotencyCache(reactors: reactors, limits: limits, quotas: quotas)
        hosting = ClientActorHosts(limits: limits, quotas: quotas, events: events)
    }

    /// Returns whether a method or stream of this name may have a rate: another type's method may have the same name.
    func hasMethodRate(_ name: String) -> Bool { !ratedNames.isEmpty && ratedNames.contains(name) }

    /// The names of connections.
    package var sessions: CallSessionRegistry { idempotencyCache.names }
}

/// Actors that live on one server of several.
extension ServerShard {
    /// Returns whether an actor may serve calls here. A suspended process may not have noticed that another server owns the actor
    /// by now and has changed it.
    package func isOwned(_ record: ActorRecord) -> Bool {
        // After shutdown no actor of several servers belongs to this one.
        router?.mayServe(record) ?? (context.router == nil)
    }

    func partition(of actor: String) -> Int { context.router?.partition(of: actor) ?? 0 }

    /// Indicates whether a response or another server waits for the current versions of streams.
    package var isAwaited: Bool { !responseBarriers.isEmpty || router?.isAwaited == true }

    /// Sends waiting responses after the turn, if any wait for streams of the connection.
    package func scheduleReadyResponses(of connection: ServerConnection) {
        guard !responseBarriers.isEmpty else { return }
        reactor.execute { connection.sendReadyResponses() }
    }

    /// Moves the streams of actors that have left this server to their next owner.
    package func moveStreams(of actors: Set<ActorName>) {
        for connection in Array(connections.values) where connection.hasMovableStreams {
            connection.moveStreams(of: actors)
        }
        router?.moveStreams(of: actors)
    }
}

/// Deactivation of idle actors.
extension ServerShard {
    /// The number of actors that are checked in one turn.
    private static let batch = 1_024
    /// The time limit for an actor's `deactivate`.
    package static let deactivation = Duration.seconds(5)

    /// Watches an actor for idleness from now on, on the responsible reactor.
    func watchIdle(_ record: ActorRecord) {
        guard let policy = record.idle else { return }
        let shard = record.home.flatMap { sibling(on: $0) } ?? siblings.first ?? self
        shard.reactor.run {
            guard record.actorInstance.isUnwatched.load(ordering: .relaxed) else { return }
            record.actorInstance.isUnwatched.store(false, ordering: .relaxed)
            shard.idleWatch.trackActor(record, policy, at: shard.context.idleClock.now(on: shard.reactor))
            shard.scheduleIdleWatch(policy)
        }
    }

    private func scheduleIdleWatch(_ policy: IdlePolicy) {
        let pause = min(max(policy.time / 8, .milliseconds(10)), .seconds(5))
        idlePause = min(idlePause ?? pause, pause)
        guard !isWatchingIdle, let pause = idlePause else { return }
        isWatchingIdle = true
        reactor.schedule(after: pause) { [weak self] in
            guard let self else { return }
            self.isWatchingIdle = false
            self.checkIdleActors()
            if self.idleWatch.count > 0 { self.scheduleIdleWatch(policy) }
        }
    }

    /// Checks each of them once, some in each turn.
    func checkIdleActors() { checkIdleActors(idleWatch.count) }

    private func checkIdleActors(_ rest: Int) {
        guard rest > 0 else { return }
        let now = context.idleClock.now(on: reactor)
        for record in idleWatch.removeIdle(of: min(rest, Self.batch), at: now) { deactivateActor(record) }
        guard rest > Self.batch else { return }
        reactor.execute { [weak self] in self?.checkIdleActors(rest - Self.batch) }
    }

    private func deactivateActor(_ record: ActorRecord) {
        guard let policy = record.idle else { return }
        record.checkIdle(discarding: policy.discards) { [weak self] isIdle in
            guard let self else { return }
            self.reactor.run {
                guard !self.isEnding else { return }
                if !isIdle { self.logRetention(of: record) }
                guard isIdle, record.actorInstance.close() else {
                    return self.idleWatch.trackActor(record, policy, at: self.context.idleClock.now(on: self.reactor))
                }
                self.didDeactivate(record, isUnused: true)
            }
        }
    }

    /// Logs once for each type why its actors are not deactivated.
    private func logRetention(of record: ActorRecord) {
        let (log, retainedTypes) = (context.log, context.retainedTypes)
        let (type, name) = (record.type, record.name)
        guard let policy = record.idle, !policy.discards else { return }
        record.checkIdle(discarding: true) { mayDeactivate in
            guard mayDeactivate, retainedTypes.insert(type) else { return }
            log(
                "actor '\(name)' (\(type.name)) was idle for \(policy.time) and cannot be deactivated: it has changed "
                    + "state without persistence; persist the state, or expose the type with discarding: true")
        }
    }

    /// Completes the deactivation of an actor whose life has ended.
    ///
    /// - Parameter isUnused: True if it has no observer, and no subscriber may resume.
    func didDeactivate(_ record: ActorRecord, isUnused: Bool = false) {
        forget(record)
        counts.count(.actorsDeactivated)
        if events.isEnabled(for: .actors) { events.emit(.actorDeactivated(name: record.name, type: record.type.name)) }
        let (siblings, parts, reactor) = (siblings, context, reactor)
        parts.directory.deactivateActor(record) {
            for shard in siblings { await shard.reactor.perform { shard.forget(record) } }
            do {
                try await TimeLimit.run(Self.deactivation, on: reactor) { try await record.deactivate() }
            } catch {
                parts.log("actor '\(record.name)' was deactivated, but its deactivate() failed: \(error)")
            }
            if let persisted = record.persisted, let actor = record.actor {
                if let error = await persisted.retire(isUnused: isUnused) { parts.log(persisted.loss(error)) }
                await persisted.removeIfOver()
                (actor.id as? TrebuchetActorID).map { parts.locals.setPersistedStates(nil, of: $0) }
            }
            record.releaseReservation()
        }
    }
}

/// Authorization that changes while the server runs.
extension ServerShard {
    /// The number of connections whose streams are checked in one batch; other work runs between batches.
    private static let examinedAtOnce = 64

    func replaceRules(_ new: AccessRules) {
        // After the server has ended, its remaining parts permit nothing.
        guard !siblings.isEmpty else { return }
        rules = new
        // Increment it after setting the rules, so that no decision of the earlier rules is cached as one of the new rules.
        context.rules.add(1, ordering: .releasing)
        endRefusedStreams()
    }

    /// Ends the streams that the current rules reject.
    func endRefusedStreams() {
        if rules != nil { endRefusedStreams(of: Array(connections.keys)[...]) }
    }

    private func endRefusedStreams(of names: ArraySlice<UInt64>) {
        for name in names.prefix(Self.examinedAtOnce) { connections[name]?.endRefusedStreams() }
        let rest = names.dropFirst(Self.examinedAtOnce)
        if !rest.isEmpty { reactor.execute { self.endRefusedStreams(of: rest) } }
    }
}
