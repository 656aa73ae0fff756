internal import Bytes
internal import Networking
internal import TrebuchetWire

/// What a server keeps on one reactor: its sessions there, the actors they have called, and the memory that every call
/// uses in turn.
///
/// `@unchecked Sendable`: touched on its reactor alone.
final class ServerShard: @unchecked Sendable {
    let states: ReactorShard
    let directory: ActorDirectory
    let limits: ServerLimits
    let answers: RememberedAnswers
    var willForgetAnswers = false
    /// The number of its reactor.
    private let index: Int
    unowned let system: TrebuchetActorSystem
    /// The message that is being handled. Behind a pointer, so that reading it costs no exclusivity check.
    let envelope = UnsafeMutablePointer<ScannedEnvelope>.allocate(capacity: 1)
    /// The result of the call that is being handled.
    let reply = UnsafeMutablePointer<ByteBuffer>.allocate(capacity: 1)
    /// By the numbers of their names.
    private(set) var sessions: [UInt64: Session] = [:]

    /// The shards of the same server on all reactors, this one among them. Set once, before the server listens.
    var siblings: [ServerShard] = []
    /// Set before the server listens, as `principals`.
    var mayCall: (@Sendable (Caller?, String, String) -> Bool)? { didSet { isGuarded = true } }
    var principals: PrincipalBuckets?
    var onConnect: (@Sendable (CallerConnection) -> Void)?
    /// Whether calls have to be looked at before they are made.
    private(set) var isGuarded: Bool

    /// Actors by name, as they were found before. The table of the hot path counts no references; `held` keeps them.
    private var records = ByteKeyTable<Unmanaged<ActorRecord>>()
    private var held: [String: ActorRecord] = [:]
    /// Calls that wait for an actor to be made, in order.
    private var waiting: [String: [(Result<Void, any Error>) -> Void]] = [:]
    /// What the mangled names of older clients mean. Bounded: a client could send any name.
    private var wireNames: [String: String] = [:]

    init(
        states: ReactorShard, index: Int, directory: ActorDirectory, answers: RememberedAnswers, limits: ServerLimits,
        system: TrebuchetActorSystem
    ) {
        self.index = index
        self.answers = answers
        self.states = states
        self.directory = directory
        self.limits = limits
        isGuarded = limits.hasRates
        self.system = system
        envelope.initialize(to: ScannedEnvelope())
        reply.initialize(to: ByteBuffer())
    }

    deinit {
        envelope.deinitialize(count: 1)
        envelope.deallocate()
        reply.deinitialize(count: 1)
        reply.deallocate()
    }

    var reactor: Reactor { states.reactor }

    /// The shard of the same server on another reactor.
    func sibling(on states: ReactorShard) -> ServerShard? { siblings.first { $0.states === states } }

    func add(_ session: Session) { sessions[session.name.number] = session }
    func remove(_ session: Session) { sessions[session.name.number] = nil }

    /// For a connection that is to live on this reactor; from anywhere.
    func newSessionName() -> SessionName { answers.names.next(onReactor: index) }

    /// Calls and streams that wait for an actor to be made.
    var waitingCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    // MARK: Actors

    /// The actor of this name, if it stands ready.
    @inline(__always)
    func record(_ name: UnsafeRawBufferPointer) -> Unmanaged<ActorRecord>? { records[name] }

    private func keep(_ record: ActorRecord, as name: String) {
        held[name] = record
        records[name] = .passUnretained(record)
    }

    /// Looks where a name that was not called before leads. Nil when an actor has to be made first: then `retry` is
    /// called on this reactor, after that of earlier calls for the same name.
    func find(
        _ name: String, retry: @escaping (Result<Void, any Error>) -> Void
    ) throws -> ActorRecord? {
        if waiting[name] != nil {
            waiting[name]?.append(retry)
            return nil
        }
        if let record = directory.record(name) ?? system.referredRecord(name) {
            keep(record, as: name)
            return record
        }
        guard let activation = try directory.activate(name) else {
            throw TrebuchetError(.actorNotFound, "no actor '\(name)' is exposed")
        }
        waiting[name] = [retry]
        let reactor = reactor
        Task {
            let outcome = await activation.result
            reactor.execute { self.activated(name, outcome) }
        }
        return nil
    }

    private func activated(_ name: String, _ outcome: Result<ActorRecord, any Error>) {
        if case .success(let record) = outcome { keep(record, as: name) }
        let calls = waiting.removeValue(forKey: name) ?? []
        for call in calls { call(outcome.map { _ in }) }
    }

    /// The next call for this name looks for it anew.
    func forget(_ name: String) {
        records[name] = nil
        // Freed when the turn is over: a call of this actor may be what leads here.
        guard let record = held.removeValue(forKey: name) else { return }
        reactor.execute { _ = record }
    }

    func wireName(_ identifier: String) -> String {
        if let known = wireNames[identifier] { return known }
        let name = TargetNames.wireName(ofIdentifier: identifier)
        if wireNames.count >= 4_096 { wireNames.removeAll() }
        wireNames[identifier] = name
        return name
    }
}
