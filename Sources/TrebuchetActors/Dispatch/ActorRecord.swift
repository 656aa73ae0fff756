internal import Bytes
internal import Distributed
internal import Transports
internal import TrebuchetWire

/// A call that runs in a task. It begins on the executor of the isolation that it is given, and leaves that only for its
/// actor's.
package typealias CallOperation = @Sendable (_ isolation: isolated (any Actor)?) async throws -> _CallResult

/// An actor that calls can reach, its type erased.
///
/// `@unchecked Sendable`: constant but for what says so.
package class ActorRecord: @unchecked Sendable {
    // `final`, here and below: else another module asks for each by a call, as if a subclass might have its own.
    package final let name: String
    package final let type: ActorType
    /// The shard of the reactor that the actor lives on; nil when it runs elsewhere.
    package final let home: SystemShard?
    package final let life: ActorLife
    /// Set when the actor has states that are kept in a store: then answers wait until they are written.
    package final let persisted: PersistedStates?
    /// The actor of an exposed record, which holds it. Without counting references: an actor that is weakly referred to
    /// anywhere pays for each count with an atomic operation through a side table.
    private let exposed: Unmanaged<AnyObject>?
    /// For an actor that is to go when nobody uses it. Written before the record is handed out, as `stake`.
    package final var idle: IdlePolicy?
    /// The slot of its name, for one that lives on one node of several, and may have to go; -1 for others. Written before the record
    /// is handed out, as `stake`.
    @exclusivity(unchecked) package final var slot = -1
    package final var isPlaced: Bool { slot >= 0 }
    /// Its place among the actors made on demand, for the server that made it.
    package final var stake: AnyObject?

    init(
        name: String, type: ActorType, home: SystemShard?, life: ActorLife, exposed: AnyObject?,
        persisted: PersistedStates? = nil
    ) {
        self.name = name
        self.type = type
        self.home = home
        self.life = life
        self.exposed = exposed.map { .passUnretained($0) }
        self.persisted = persisted
    }

    /// The actor, if it is still there.
    package var actor: (any DistributedActor)? { fatalError("abstract") }

    /// Runs a synchronous method in the actor's isolation, where the caller is.
    @inline(__always)
    package final func call(_ method: ActorMethod, _ arguments: inout _CallArguments, _ reply: inout _CallReply) throws
    {
        assert(home?.reactor.isCurrent != false)
        guard let body = method.body else { fatalError("a method that suspends was called in place") }
        if let exposed {
            return try exposed._withUnsafeGuaranteedRef { try body($0, &arguments, &reply) }
        }
        guard let actor else { throw gone }
        try body(actor, &arguments, &reply)
    }

    package final var gone: TrebuchetError { TrebuchetError(.actorNotFound, "actor '\(name)' is gone") }

    /// Gives `completion` the outcome of a call as soon as all that it may show is written.
    ///
    /// - Parameter told: the call, where somebody is told of it.
    package final func whenWritten(
        _ outcome: CallOutcome, _ told: ToldCall?, _ completion: @escaping CallCompletion
    ) {
        guard let persisted else { return completion(outcome) }
        persisted.home.reactor.run {
            if let told, !persisted.isAtRest { told.waitsForStore() }
            persisted.whenWritten { error in completion(error.map { .failure($0) } ?? outcome) }
        }
    }

    /// The same for a call that is noted in the store; `answer` makes what is kept of the outcome, on the actor's reactor.
    package final func whenWritten(
        _ outcome: CallOutcome, of call: KeptCall, _ told: ToldCall?,
        _ answer: @escaping @Sendable (CallOutcome) -> KeptAnswer, _ completion: @escaping CallCompletion
    ) {
        guard let persisted else { return completion(outcome) }
        persisted.home.reactor.run {
            let kept = answer(outcome)
            persisted.end(call, kept)
            let outcome: CallOutcome = kept.map { _CallResult(encoded: $0) }.mapError { $0 }
            if let told, !persisted.isAtRest { told.waitsForStore() }
            persisted.whenWritten { error in completion(error.map { .failure($0) } ?? outcome) }
        }
    }

    /// A call begins that is noted in the store with what it changes. On the actor's reactor.
    ///
    /// - Returns: why it may not.
    package final func begin(_ call: KeptCall) -> TrebuchetError? { persisted?.begin(call) }

    /// Runs `body` isolated to the actor, in the order in which it was asked.
    func isolated(_ body: @escaping @Sendable () throws -> _CallResult) throws -> CallOperation {
        fatalError("abstract")
    }

    /// The call of a method that no dispatch table has: one of a plain actor, or in an extension, which the macro does not
    /// see.
    package func operation(
        _ method: ProgramMethods.Method, _ decoder: CallInvocationDecoder, in system: TrebuchetActorSystem
    ) throws -> CallOperation {
        fatalError("abstract")
    }

    /// Gives the source of a stream to `body`, isolated to the actor; nil when the actor is gone. On its reactor that happens at
    /// once.
    package func executeStreamingTarget(_ stream: String, _ body: @escaping @Sendable (StreamHub?) -> Void) {
        fatalError("abstract")
    }

    /// The same for a stream that is to begin, when the connection may observe it.
    ///
    /// - Parameter connection: nil at a server that does not identify its callers.
    package func beginStream(
        _ stream: String, for connection: CallerConnection?,
        _ body: @escaping @Sendable (Result<StreamHub?, any Error>) -> Void
    ) {
        executeStreamingTarget(stream) { body(.success($0)) }
    }

    /// Whether nothing would be lost with the actor: no state of it has changed, but for those that a store keeps, and nobody
    /// observes one. In its isolation.
    package func looksIdle(discarding: Bool, _ body: @escaping @Sendable (Bool) -> Void) { body(false) }

    /// Whether it wants to do something before it goes.
    package var hasDeactivation: Bool { false }

    /// Lets the actor do what it wants to before it goes.
    package func deactivate() async throws {}
}

package typealias CallOutcome = Result<_CallResult, any Error>
package typealias CallCompletion = @Sendable (CallOutcome) -> Void

extension TrebuchetActorSystem {
    /// Calls a method by the name that it has in the program.
    func execute<A: DistributedActor>(
        _ method: ProgramMethods.Method, on actor: A, _ decoder: CallInvocationDecoder
    ) async throws -> _CallResult where A.ID == TrebuchetActorID {
        var decoder = decoder
        let handler = CallResultHandler()
        try await executeDistributedTarget(
            on: actor, target: RemoteCallTarget(method.identifier), invocationDecoder: &decoder, handler: handler)
        return try handler.outcome()
    }
}
