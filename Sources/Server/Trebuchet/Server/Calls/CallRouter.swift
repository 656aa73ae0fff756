internal import Bytes
internal import Platform
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetWire

/// The way in which a call is executed.
enum CallPath: Equatable {
    /// The method runs on this thread, and the response is sent at once.
    case inPlace
    /// As ``inPlace``, while event handlers receive calls or spans.
    case observed
    /// The method runs on this thread, and the response waits until the changes are written.
    case persisted
    /// The call waits in the `CallQueue` of the reactor. It gets a separate task only if it suspends.
    case queued
    /// The call goes to another reactor in a `CrossReactorCallBatch`.
    case crossReactor
    /// The call is an `InFlightCall`, which waits for the activation or runs in a task.
    case task
    /// The call is executed at most once, and its response is recorded.
    case idempotent
    /// The call goes to the server that owns the actor.
    case forwarded
    /// The call is not executed.
    case rejected(CallRejection)
}

/// The reason why a call has no method, or not the arguments of its method.
enum CallRejection: Equatable, CaseIterable {
    case actorNotFound
    case methodNotFound
    case argumentCount
    case genericCount
}

/// The properties of a call that select its path: of its actor, its method, its message and its connection.
struct CallTraits {
    /// The place of an actor, as seen from the reactor of the connection.
    enum Place: CaseIterable {
        /// No actor has the name.
        case unknown
        /// Another server owns the actor.
        case otherServer
        /// The actor must be activated.
        case inactive
        /// The actor has an executor other than a reactor.
        case noReactor
        case otherReactor
        case thisReactor
    }

    // The actor.
    var place = Place.thisReactor
    /// True if the actor has persisted states.
    var isPersisted = false
    /// True if earlier calls of the actor wait to start in tasks. The call must not overtake them.
    var hasStartingCalls = false
    /// True if an earlier call of the actor has suspended, as the next calls probably will.
    var needsSeparateTask = false

    // The method.
    /// False if the actor has no method with the name.
    var hasMethod = true
    var isSynchronous = false
    var isIdempotent = false

    // The message.
    var hasArgumentCount = true
    var hasGenericCount = true
    /// True if the client names the session of the call, so that it can repeat the call.
    var hasSession = false
    var hasMetadata = false
    /// True if interceptors run around the call in a task.
    var isIntercepted = false

    // The connection.
    /// True if event handlers receive calls, versions or spans.
    var isObserved = false
    var isOpen = true
    /// True if the client is connected to another server.
    var isOfOtherServer = false
    /// True if the message was not sent by the client, or was counted before.
    var isCounted = false
    /// True if the client has actors, whose references are bound to the task of a call.
    var hostsActors = false
}

extension CallTraits {
    /// Reads the traits that decide whether a call runs in place.
    @inline(__always)
    init(_ method: ActorMethod, of record: ActorRecord, at shard: ServerShard) {
        self.init()
        isSynchronous = method.runsInPlace
        setPlace(of: record, at: shard)
        isPersisted = record.persisted != nil
        hasStartingCalls = record.actorInstance.isStarting
        isObserved = Unmanaged.passUnretained(shard.events)._withUnsafeGuaranteedRef {
            $0.isEnabled(for: .callsVersionsOrSpans)
        }
    }

    /// Reads all traits but those of the connection.
    ///
    /// - Parameter method: nil if the actor or the method is unknown.
    init(_ method: ActorMethod?, at location: ActorLocation, _ message: borrowing Message, at shard: ServerShard) {
        self.init()
        if let method, let record = location.record {
            self.init(method, of: record, at: shard)
            needsSeparateTask = record.actorInstance.separateTaskCalls.load(ordering: .relaxed) > 0
        }
        switch location {
        case .ready(let record): setPlace(of: record, at: shard)
        case .inactive: place = .inactive
        case .elsewhere: place = .otherServer
        case .unknown: place = .unknown
        }
        hasMethod = method != nil
        if let method {
            isIdempotent = method.isIdempotent
            hasArgumentCount = message.envelope.pointee.arguments.count == method.arguments
            hasGenericCount = message.envelope.pointee.genericSubstitutions.count == method.generics
        }
        hasSession = !message.envelope.pointee.session.isAbsent
        hasMetadata = message.hasMetadata
    }

    @inline(__always)
    private mutating func setPlace(of record: ActorRecord, at shard: ServerShard) {
        guard let home = record.home else { return place = .noReactor }
        place = home === shard.states ? .thisReactor : .otherReactor
    }
}

extension CallRejection {
    /// Returns the error for the client.
    func error(of method: ActorMethod?, _ type: ActorType?, _ message: borrowing Message) -> TrebuchetError {
        let envelope = message.envelope
        let actor = "actor '\(message.actorName.prefix(bytes: ActorName.longest))'"
        switch self {
        case .actorNotFound: return TrebuchetError(.actorNotFound, "no \(actor) is exposed")
        case .methodNotFound:
            var text = "\(actor) has no method '\(message.target.prefix(bytes: 128))'"
            if let type, !type.names.isEmpty { text += "; it has " + type.names.joined(separator: ", ") }
            return TrebuchetError(.methodNotFound, text)
        case .argumentCount:
            let (name, count) = (method?.name ?? "", method?.arguments ?? 0)
            return TrebuchetError(
                .invalidArguments,
                "\(name) takes \(count.counted("argument")), got \(envelope.pointee.arguments.count)")
        case .genericCount:
            let (name, count) = (method?.name ?? "", method?.generics ?? 0)
            return TrebuchetError(
                .invalidArguments,
                "\(name) takes \(count.counted("generic substitution")), got "
                    + "\(envelope.pointee.genericSubstitutions.count)")
        }
    }
}

/// Selects the path of a call. A pure function of its traits: interceptors, authorization and rate limits, which run user code and
/// count, come before. A path that its actor refuses because it is being deactivated is replaced by ``CallPath/task``.
enum CallRouter {
    /// Returns the path of a call.
    ///
    /// - Parameter isDuplicate: Returns true if another call of the connection may have the same callID. Called only for paths that
    ///   do not register the call.
    static func path(of call: CallTraits, isDuplicate: () -> Bool) -> CallPath {
        switch call.place {
        case .otherServer: return .forwarded
        case .unknown: return .rejected(.actorNotFound)
        case .inactive, .noReactor, .otherReactor, .thisReactor: break
        }
        guard call.hasMethod else { return .rejected(.methodNotFound) }
        guard call.hasArgumentCount else { return .rejected(.argumentCount) }
        guard call.hasGenericCount else { return .rejected(.genericCount) }
        if call.isIdempotent, call.hasSession { return .idempotent }
        // Metadata and interceptors belong to an object for each call.
        guard !call.hasMetadata, !call.isIntercepted else { return .task }
        if let path = inPlacePath(of: call) { return path }
        // An event handler or a span needs an object for each call.
        guard !call.isPersisted, !call.isObserved else { return .task }
        switch call.place {
        case .thisReactor:
            let isQueued = !call.hostsActors && !call.isCounted && !call.needsSeparateTask && !isDuplicate()
            return isQueued ? .queued : .task
        case .otherReactor:
            let isBatched = runsInPlaceElsewhere(call) && call.isOpen && !call.isOfOtherServer && !isDuplicate()
            return isBatched ? .crossReactor : .task
        case .inactive, .noReactor, .unknown, .otherServer: return .task
        }
    }

    /// Returns the path of a call that runs on this thread; nil for other calls. The traits of message and connection, except
    /// `isObserved`, need not be set. The call has neither metadata nor interceptors.
    @inline(__always)
    static func inPlacePath(of call: CallTraits) -> CallPath? {
        guard call.isSynchronous, call.place == .thisReactor, !call.hasStartingCalls else { return nil }
        return call.isPersisted ? .persisted : call.isObserved ? .observed : .inPlace
    }

    /// Returns true if a call runs in place on another reactor, so that it ends soon.
    static func runsInPlaceElsewhere(_ call: CallTraits) -> Bool {
        call.isSynchronous && call.place == .otherReactor && !call.isPersisted && !call.isIntercepted
    }
}
