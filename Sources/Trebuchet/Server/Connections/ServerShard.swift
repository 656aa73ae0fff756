internal import Platform
internal import Bytes
internal import Networking
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetWire

/// What a server keeps on one reactor: its connections there, the actors they have called, and the memory that every call
/// uses in turn.
///
/// `@unchecked Sendable`: touched on its reactor alone.
final class ServerShard: @unchecked Sendable {
    let states: SystemShard
    let reactor: Reactor
    let parts: ServerParts
    /// Those of `states` and of `parts`, nearer to each call.
    let counts: ShardCounts
    let events: ServerEvents
    /// Used in one step each time, so access to it needs no check.
    @exclusivity(unchecked) var run = CallRun()
    /// Which calls begin a trace. Used in one step each time, so access to it needs no check.
    @exclusivity(unchecked) var traces = TraceSampling.Countdown()
    var willForgetAnswers = false
    /// The number of its reactor.
    let index: Int
    unowned let system: TrebuchetActorSystem
    /// The coders of `states`: each call uses one, read in one step, so access to it needs no check.
    @exclusivity(unchecked) private var coder: ValueCoder
    @exclusivity(unchecked) private var wholeSecondsCoder: ValueCoder
    /// Where messages are scanned. Taken and given back in one step each, so access to it needs no check.
    @exclusivity(unchecked) var scans = ScanPlaces()
    /// How much memory `reply` keeps for the next result after a large one.
    static let keptReply = 256 << 10
    /// The result of the call that is being handled.
    let reply = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// By the numbers of their names.
    private(set) var connections: [UInt64: ServerConnection] = [:]

    /// The shards of the same server on all reactors, this one among them, until the server has shut down. Set before it
    /// listens.
    var siblings: [ServerShard] = []
    /// Of `AccessPolicy`, with which the server is made: there before any connection, or never. Others may replace them, on this
    /// reactor.
    var rules: AccessRules? { didSet { if rules != nil { isGuarded = true } } }
    var helpers = HelperActors()
    /// Set before the server listens.
    var principals: SharedBuckets<PrincipalName>?
    var onConnect: (@Sendable (CallerConnection) -> Void)?
    /// Whether calls have to be looked at before they are made.
    private(set) var isGuarded: Bool

    /// Actors by name, as they were found before. The table of the hot path counts no references; `held` keeps them. Looking into it
    /// and changing it call nothing that comes back here, so access to it needs no check.
    @exclusivity(unchecked) private var records = ByteKeyTable<Unmanaged<ActorRecord>>()
    private var held: [ActorName: ActorRecord] = [:]
    /// When an actor was forgotten last that may live on another node now.
    private(set) var placedUntil: UInt64 = 0
    /// Calls that wait for an actor to be made.
    private var waiting: [ActorName: ActorQueue] = [:]
    /// Calls of methods that may suspend, as long as they have not.
    let calls: CallQueue
    /// Answers of repeated calls that wait for streams, by the numbers of their connections.
    var answersBehindStreams: [UInt64: AnswerQueue] = [:]
    /// At one of several nodes.
    let ownerNews = OwnerNews()
    /// Streams of actors of this reactor that other nodes take for their clients; one for each of their lines.
    var feeds: [NodeFeeds] = []
    /// Of its connections, those of this server to itself, and those of clients at other nodes.
    private var foreignCount = 0
    /// At one of several nodes, from the first question on.
    var slotQueues: SlotQueues?
    var idleWatch = IdleWatch()
    var isWatchingIdle = false
    /// Whether the connections that there are have been told to go, or are being told.
    var isDraining = false
    /// Whether the server shuts down, which lets all actors go.
    var isEnding = false
    /// The time of the last pong behind `goAway`, or of the last call on a draining connection. Nanoseconds of the reactor's clock.
    var lastLateMessage: UInt64 = 0
    /// Between two looks, as the shortest time of a policy asks for.
    var idlePause: Duration?
    /// Answers of calls that came in on other reactors, until the turn ends.
    var outgoing: [OutgoingAnswers] = []
    /// The call that a message in hand was before, for the connection that handles it again.
    var continued: (call: RunningCall, connection: ServerConnection)?
    var hasOutgoing = false
    /// For calls to actors of other reactors.
    var spareBatches: [CrossingBatch] = []

    init(states: SystemShard, on reactor: Reactor, index: Int, parts: ServerParts, system: TrebuchetActorSystem) {
        counts = states.counts
        events = parts.events
        states.events = parts.events
        self.index = index
        self.parts = parts
        self.states = states
        self.reactor = reactor
        calls = CallQueue(states)
        isGuarded = parts.limits.hasRates
        self.system = system
        coder = states.coder
        wholeSecondsCoder = states.wholeSecondsCoder
        reply.initialize(to: ByteBuffer())
    }

    deinit {
        reply.deinitialize(count: 1)
        reply.deallocate()
    }

    var directory: ActorDirectory { parts.directory }
    var limits: ServerLimits { parts.limits }
    var answers: RememberedAnswers { parts.answers }
    /// What writes the states of the server's own actors on this reactor; nil at a server without a store.
    var stateWriter: StateWriter? { parts.locals.writer(on: states) }
    /// What writes those of actors that one node of several has; nil at a server that is no node.
    var placedWriter: StateWriter? { parts.locals.writer(on: states, isPlaced: true) }
    /// Whether any actors of this reactor are persisted.
    var keepsStates: Bool { parts.locals.keepsStates(on: states) }
    var writers: [StateWriter] { parts.locals.writers(on: states) }

    @inline(__always)
    func coder(writing dates: DateForm) -> ValueCoder {
        switch dates {
        case .milliseconds: coder
        case .wholeSeconds: wholeSecondsCoder
        }
    }

    /// The shard of the same server on another reactor.
    func sibling(on states: SystemShard) -> ServerShard? { siblings.first { $0.states === states } }

    func add(_ connection: ServerConnection) {
        if connection.isServer || connection.upstream != nil { foreignCount += 1 }
        connections[connection.name.number] = connection
    }
    func remove(_ connection: ServerConnection) {
        if let removed = connections.removeValue(forKey: connection.name.number),
            removed.isServer || removed.upstream != nil
        {
            foreignCount -= 1
        }
        streamsMayShow(connection)
    }

    /// For a connection that is to live on this reactor; from anywhere.
    func newConnectionName() -> ConnectionName { answers.names.next(onReactor: index) }

    /// The server has shut down, or is gone: what its parts know of each other is forgotten, so that they can be freed.
    func takeApart() {
        siblings = []
        states.server = nil
        // What is still connected may do nothing any more.
        if rules != nil { rules = AccessRules.none }
        onConnect = nil
        records = ByteKeyTable()
        held = [:]
        waiting = [:]
        slotQueues = nil
        feeds = []
        idleWatch = IdleWatch()
        spareBatches = []
        coder = ValueCoder()
        wholeSecondsCoder = ValueCoder()
        states.takeApart()
    }

    /// Connections of clients that have come here.
    var clientCount: Int { connections.count - foreignCount }

    /// Calls and streams that wait for an actor to be made.
    var waitingCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    // MARK: Actors

    /// The actor of this name, if it stands ready.
    @inline(__always)
    func record(_ name: UnsafeRawBufferPointer) -> Unmanaged<ActorRecord>? { records[name] }

    private func keep(_ record: ActorRecord, as name: ActorName) {
        held[name] = record
        records[name.text] = .passUnretained(record)
    }

    /// What a name that was not called before leads to. Nothing is made.
    func place(of name: ActorName) -> ActorPlace {
        if let nodes = parts.nodes, let type = directory.placedType(of: name), !nodes.owns(name.text) {
            return .elsewhere(type)
        }
        if waiting[name] == nil,
            let record = directory.record(name) ?? parts.locals.referredRecord(name.text, in: system)
        {
            keep(record, as: name)
            return .ready(record)
        }
        return directory.type(of: name).map { .unmade($0) } ?? .nowhere
    }

    /// Makes the actor of a name, and calls `resume` on this reactor with its record, after earlier calls for the same name.
    func awaitActor(
        _ name: ActorName, for parties: Parties, _ resume: @escaping (Result<ActorRecord, any Error>) -> Void
    ) -> ActorWaiter? {
        if let queue = waiting[name] { return queue.add(resume) }
        let queue = ActorQueue(for: parties)
        do throws(TrebuchetError) {
            try activate(name, for: queue)
        } catch {
            resume(.failure(error))
            return nil
        }
        waiting[name] = queue
        return queue.add(resume)
    }

    /// Before those who wait look for the owner of an actor that has moved while it was loaded.
    private static let movedPause = Duration.milliseconds(20)

    private func activate(_ name: ActorName, for queue: ActorQueue) throws(TrebuchetError) {
        if let nodes = parts.nodes, directory.placedType(of: name) != nil, !nodes.owns(name.text) {
            throw ActorMoved.error
        }
        guard let activation = try directory.activate(name, for: queue.parties, on: reactor) else {
            throw TrebuchetError(.actorNotFound, "no actor '\(name.text.prefix(bytes: ActorName.longest))' is exposed")
        }
        let reactor = reactor
        Task {
            let outcome = await activation.result
            guard case .failure(let error) = outcome, ActorMoved.isIt(error) else {
                return reactor.execute { self.activated(name, outcome) }
            }
            // Who owns it may not be known yet; nobody asks again and again meanwhile.
            reactor.execute { _ = reactor.schedule(after: Self.movedPause) { self.activated(name, outcome) } }
        }
    }

    /// Calls that are resumed in one go; others have their turn between.
    private static let resumedAtOnce = 32

    private func activated(_ name: ActorName, _ outcome: Result<ActorRecord, any Error>) {
        guard let queue = waiting[name] else { return }
        if case .success(let record) = outcome {
            counts.count(.actorsMade)
            if events.wants(.actors) { events.tell(.actorMade(name: record.name, type: record.type.name)) }
            watchIdle(record)
        } else {
            // Who comes from now on tries again.
            waiting[name] = nil
        }
        resume(queue, name, outcome)
    }

    /// While some wait, those who come queue behind them: calls keep their order.
    private func resume(_ queue: ActorQueue, _ name: ActorName, _ outcome: Result<ActorRecord, any Error>) {
        if queue.resume(atMost: Self.resumedAtOnce, outcome) {
            guard case .success(let record) = outcome, record.life.isGone else {
                return reactor.execute { self.resume(queue, name, outcome) }
            }
            // Those before have brought it to its end; the others wait for the next of its name.
            do throws(TrebuchetError) {
                try activate(name, for: queue)
            } catch {
                waiting[name] = nil
                resume(queue, name, .failure(error))
            }
            return
        }
        guard waiting[name] === queue, case .success(let record) = outcome else { return }
        waiting[name] = nil
        if directory.record(name) === record { keep(record, as: name) }
    }

    /// The next call for this name looks for it anew.
    func forget(_ name: ActorName) {
        records[name.text] = nil
        // Freed when the turn is over: a call of this actor may be what leads here.
        guard let record = held.removeValue(forKey: name) else { return }
        reactor.execute { _ = record }
    }

    /// The same, unless another has taken its place.
    func forget(_ record: ActorRecord) {
        let name = ActorName(record.name)
        if held[name] === record { forget(name) }
        if record.isPlaced { placedUntil = reactor.now }
    }
}

/// What the name of an actor leads to.
enum ActorPlace {
    case ready(ActorRecord)
    /// One that is made when it is first called.
    case unmade(ActorType)
    /// One that lives on another node.
    case elsewhere(ActorType)
    case nowhere
}

/// What all reactors of a server share.
final class ServerParts: Sendable {
    let limits: ServerLimits
    let limitsOfClient: ConnectionLimits
    let limitsOfServer: ConnectionLimits
    let directory: ActorDirectory
    /// The actors that were made in the server's system, exposed or not.
    let locals = LocalActors()
    let answers: RememberedAnswers
    let shares: ShareBook
    /// Of `ServerLimits.heldBytes`.
    let memory: MemoryBudget
    /// Where it says what happens.
    let events = ServerEvents()
    /// Lines for people. Those who listen are told them too, with the level `notice`.
    let log: @Sendable (String) -> Void
    /// The same with another level.
    let logAt: @Sendable (ServerEvent.Level, String) -> Void
    /// The same for what those who listen are told in another way.
    let plainLog: @Sendable (String) -> Void
    let disclosure: ErrorDisclosure
    let principalMemory: PrincipalMemory
    /// The store that an operator wants to know of; nil without one.
    let probedStore = Mutex<(any StateStore)?>(nil)
    let hosting: HostingClients
    let idleClock = IdleClock()
    /// Of `AccessPolicy.authenticate`.
    let failedHooks: RefusalLog
    let refusedSubjects: RefusedSubjects
    let loads: LoadFailures
    /// Counted up whenever what `AccessPolicy.authorize` decides by has changed.
    let rules = Atomic<UInt64>(0)
    /// Set before the server listens, at one of several nodes.
    var nodes: ServerNodes? { nodesOfServer.withLock { $0 } }
    let nodesOfServer = Mutex<ServerNodes?>(nil)

    init(
        reactors: Int, limits: ServerLimits, showsErrorText: Bool = false, log: @escaping @Sendable (String) -> Void
    ) {
        self.limits = limits
        limitsOfClient = limits.ofClient
        limitsOfServer = limits.ofServer
        // Here for all: names and texts of peers are in many of them.
        let events = events
        let plainLog: @Sendable (String) -> Void = { log(LogLine.of($0)) }
        self.plainLog = plainLog
        let logAt: @Sendable (ServerEvent.Level, String) -> Void = { level, line in
            plainLog(line)
            events.tell(.line(level, LogLine.of(line)))
        }
        let log: @Sendable (String) -> Void = { logAt(.notice, $0) }
        (self.log, self.logAt) = (log, logAt)
        disclosure = ErrorDisclosure(showsText: showsErrorText, log: log)
        failedHooks = RefusalLog(log)
        refusedSubjects = RefusedSubjects(log)
        loads = LoadFailures(log: logAt)
        shares = ShareBook(limits: limits, events: events)
        directory = ActorDirectory(shares: shares)
        memory = MemoryBudget(limit: limits.heldBytes)
        answers = RememberedAnswers(reactors: reactors, limits: limits, memory: memory)
        principalMemory = PrincipalMemory(limit: limits.heldBytesPerPrincipal ?? limits.heldBytes / 4)
        hosting = HostingClients(
            limits: limits, shares: shares,
            quotas: ClientCallQuotas(limits, memory: memory, principalMemory: principalMemory), events: events)
    }
}
