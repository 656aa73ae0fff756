internal import Bytes
internal import Distributed
internal import Transports
internal import TrebuchetWire

/// A call that runs in a task. It starts on the executor of the given isolation and leaves it only for the actor's executor.
package typealias CallOperation = @Sendable (_ isolation: isolated (any Actor)?) async throws -> _CallResult

/// The type-erased entry of an actor that calls can reach.
///
/// `@unchecked Sendable`: constant, except for the properties whose comments state otherwise.
package class ActorRecord: @unchecked Sendable {
    // `final` here and below, because another module would otherwise access each property through a virtual call.
    package final let name: String
    package final let type: ActorType
    /// The shard of the reactor that the actor lives on; nil if the actor runs elsewhere.
    package final let home: SystemShard?
    package final let actorInstance: ActorInstance
    /// The persisted states of the actor, for which responses wait until they are written; nil without any.
    package final let persisted: PersistedStates?
    /// The actor of an exposed record, which also retains it. Unmanaged, because reference counts of an object with weak
    /// references are atomic operations on a side table.
    private let exposed: Unmanaged<AnyObject>?
    /// The idle policy of an actor that can be deactivated. Written before other code can access the record, like `reservation`.
    package final var idle: IdlePolicy?
    /// The partition of the actor's name, for an actor that lives on one server of several and may move; -1 for others. Written before
    /// other code can access the record, like `reservation`.
    @exclusivity(unchecked) package final var partition = -1
    package final var isClustered: Bool { partition >= 0 }
    /// The entry of a virtual actor in the quota of the server that activated it.
    package final var reservation: AnyObject?

    init(
        name: String, type: ActorType, home: SystemShard?, actorInstance: ActorInstance, exposed: AnyObject?,
        persisted: PersistedStates? = nil
    ) {
        self.name = name
        self.type = type
        self.home = home
        self.actorInstance = actorInstance
        self.exposed = exposed.map { .passUnretained($0) }
        self.persisted = persisted
    }

    /// The actor, if it has not been freed.
    package var actor: (any DistributedActor)? { fatalError("abstract") }

    /// Runs a synchronous method in the actor's isolation. The caller must run in that isolation.
    @inline(__always)
    package final func call(_ method: ActorMethod, _ arguments: inout _CallArguments, _ reply: inout _CallReply) throws
    {
        assert(home?.reactor.isCurrent != false)
        guard let body = method.body else { fatalError("a method that suspends was executed in place") }
        if let exposed {
            return try exposed._withUnsafeGuaranteedRef { try body($0, &arguments, &reply) }
        }
        guard let actor else { throw notFoundError }
        try body(actor, &arguments, &reply)
    }

    package final var notFoundError: TrebuchetError {
        TrebuchetError(.actorNotFound, "actor '\(name)' no longer exists")
    }

    /// Passes the outcome of a call to `completion` after all changes that it may show are written.
    ///
    /// - Parameter observed: the call, if it is observed.
    package final func whenWritten(
        _ outcome: CallOutcome, _ observed: ObservedCall?, _ completion: @escaping CallCompletion
    ) {
        guard let persisted else { return completion(outcome) }
        persisted.home.reactor.run {
            if let observed, !persisted.isPersisted { observed.waitsForStore() }
            persisted.whenWritten { error in completion(error.map { .failure($0) } ?? outcome) }
        }
    }

    /// Passes the outcome of a call that is recorded in the store to `completion` after all changes are written. `answer`
    /// returns the recorded response for the outcome; it runs on the actor's reactor.
    package final func whenWritten(
        _ outcome: CallOutcome, of call: IdempotencyRecord, _ observed: ObservedCall?,
        _ answer: @escaping @Sendable (CallOutcome) -> RecordedResponse, _ completion: @escaping CallCompletion
    ) {
        guard let persisted else { return completion(outcome) }
        persisted.home.reactor.run {
            let recorded = answer(outcome)
            persisted.recordCallEnd(call, recorded)
            let outcome: CallOutcome = recorded.map { _CallResult(encoded: $0) }.mapError { $0 }
            if let observed, !persisted.isPersisted { observed.waitsForStore() }
            persisted.whenWritten { error in completion(error.map { .failure($0) } ?? outcome) }
        }
    }

    /// Starts a call that is recorded in the store with its changes. On the actor's reactor.
    ///
    /// - Returns: the error if the call must not run.
    package final func recordCallStart(_ call: IdempotencyRecord) -> TrebuchetError? {
        persisted?.recordCallStart(call)
    }

    /// Returns an operation that runs `body` isolated to the actor, in the order of the requests.
    func isolated(_ body: @escaping @Sendable () throws -> _CallResult) throws -> CallOperation {
        fatalError("abstract")
    }

    /// Passes the producer of a stream to `body`, isolated to the actor; nil if the actor was freed. On its reactor this
    /// happens immediately.
    package func executeStreamingTarget(_ stream: String, _ body: @escaping @Sendable (StreamProducer?) -> Void) {
        fatalError("abstract")
    }

    /// Passes the producer of a stream to `body` when the stream starts, if the connection may observe it.
    ///
    /// - Parameter connection: the subscriber's connection; nil at a server that does not identify its callers.
    package func beginStream(
        _ stream: String, for connection: CallerConnection?,
        _ body: @escaping @Sendable (Result<StreamProducer?, any Error>) -> Void
    ) {
        executeStreamingTarget(stream) { body(.success($0)) }
    }

    /// Ends the streams of clients with an error, then calls `completion` in the actor's isolation.
    package func endClientStreams(_ error: TrebuchetError, _ completion: @escaping @Sendable () -> Void) {
        completion()
    }

    /// Reports whether deactivation would lose nothing: every changed state is persisted, and no state is observed. Runs in the
    /// actor's isolation.
    package func checkIdle(discarding: Bool, _ body: @escaping @Sendable (Bool) -> Void) { body(false) }

    /// True if the actor has an `activate()`.
    package var hasActivation: Bool { false }

    /// Runs the actor's preparation before its first call.
    package func activate() async throws {}

    /// True if the actor has a cleanup that runs before deactivation.
    package var hasDeactivation: Bool { false }

    /// Runs the actor's cleanup before deactivation.
    package func deactivate() async throws {}

    /// Passes a due alarm to the actor, and removes the alarm in the same write as the changes that the method has made since its
    /// last suspension.
    package func deliverAlarm(_ due: DueAlarm) async throws { throw notFoundError }
}

package typealias CallOutcome = Result<_CallResult, any Error>
package typealias CallCompletion = @Sendable (CallOutcome) -> Void
