internal import Bytes
internal import Distributed
internal import TrebuchetWire

/// A method of an exposed actor, as calls find it.
final class ActorMethod: Sendable {
    /// A synchronous method that takes its actor with neither its type nor its isolation: whoever calls it is on the
    /// actor's reactor and passes an actor of the type that the method belongs to.
    typealias Body = @Sendable (AnyObject, inout CallArguments, inout CallReply) throws -> Void

    let name: String
    let index: Int
    let arguments: Int
    let generics: Int
    /// Whether its answers are kept for clients that ask for it.
    let isIdempotent: Bool
    /// Set when it is synchronous and may run in place.
    let body: Body?

    init(name: String, index: Int, arguments: Int, generics: Int, isIdempotent: Bool, body: Body?) {
        self.name = name
        self.index = index
        self.arguments = arguments
        self.generics = generics
        self.isIdempotent = isIdempotent
        self.body = body
    }
}

extension ActorMethod {
    var runsInPlace: Bool { body != nil }
}

/// A call that runs in a task.
typealias CallOperation = @Sendable () async throws -> CallResult

/// An actor that calls can reach, its type erased.
///
/// `@unchecked Sendable`: constant but for `starting`, which is touched on the actor's reactor alone.
class ActorRecord: @unchecked Sendable {
    let name: String
    /// The shard of the reactor that the actor lives on; nil when it runs on the global pool.
    let home: ReactorShard?
    /// Calls that have been started in a task and have not begun to run. Until they have, later ones must not run in
    /// place, or they would overtake.
    final var starting = 0
    private let methods: [ActorMethod]
    private let methodsByName: ByteKeyTable<Unmanaged<ActorMethod>>
    let streamNames: [String]
    /// Set when the actor has states that are kept in a store: then answers wait until they are written.
    final let persisted: PersistedStates?
    /// The actor of an exposed record, which holds it. Without counting references: an actor that is weakly referred to
    /// anywhere pays for each count with an atomic operation through a side table.
    private let exposed: Unmanaged<AnyObject>?

    init(
        name: String, home: ReactorShard?, methods: [ActorMethod], streamNames: [String], exposed: AnyObject?,
        persisted: PersistedStates? = nil
    ) {
        self.name = name
        self.home = home
        self.methods = methods
        var table = ByteKeyTable<Unmanaged<ActorMethod>>()
        for method in methods { table[method.name] = .passUnretained(method) }
        methodsByName = table
        self.streamNames = streamNames
        self.exposed = exposed.map { .passUnretained($0) }
        self.persisted = persisted
    }

    /// The method of this name; the record keeps it alive.
    @inline(__always)
    final func method(_ target: UnsafeRawBufferPointer) -> Unmanaged<ActorMethod>? { methodsByName[target] }

    final var methodNames: [String] { methods.map(\.name).sorted() }

    /// The actor, if it is still there.
    var actor: (any DistributedActor)? { fatalError("abstract") }

    /// Runs a synchronous method on the actor's reactor, where the caller is.
    @inline(__always)
    final func call(_ method: ActorMethod, _ arguments: inout CallArguments, _ reply: inout CallReply) throws {
        assert(home?.reactor.isCurrent == true)
        guard let body = method.body else { fatalError("a method that suspends was called in place") }
        if let exposed {
            return try exposed._withUnsafeGuaranteedRef { try body($0, &arguments, &reply) }
        }
        guard let actor else { throw TrebuchetError(.actorNotFound, "actor '\(name)' is gone") }
        try body(actor, &arguments, &reply)
    }

    /// Gives `completion` the outcome of a call as soon as all that it may show is written.
    final func whenWritten(
        _ outcome: Result<CallResult, any Error>,
        _ completion: @escaping @Sendable (Result<CallResult, any Error>) -> Void
    ) {
        guard let persisted else { return completion(outcome) }
        persisted.home.reactor.run {
            persisted.whenWritten { error in completion(error.map { .failure($0) } ?? outcome) }
        }
    }

    /// Decodes the arguments and gives the call that a task is to run.
    func prepare(_ method: ActorMethod, _ arguments: inout CallArguments) throws -> CallOperation {
        fatalError("abstract")
    }

    /// Runs `body` isolated to the actor, in the order in which it was asked.
    func isolated(_ body: @escaping @Sendable () throws -> CallResult) throws -> CallOperation {
        fatalError("abstract")
    }

    /// The call of a method by its mangled name, for methods that no dispatch table has: those of a plain actor, and those
    /// in extensions, which the macro does not see. Nil when the actor has no such method.
    func executeTarget(
        _ target: String, _ decoder: CallInvocationDecoder, in system: TrebuchetActorSystem
    ) -> CallOperation? {
        fatalError("abstract")
    }

    /// Gives the source of a stream to `body`, isolated to the actor. On its reactor that happens at once.
    func executeStreamingTarget(_ stream: String, _ body: @escaping @Sendable ((any AnyStateSource)?) -> Void) {
        fatalError("abstract")
    }
}

extension TrebuchetActorSystem {
    func operation<A: DistributedActor>(
        of target: String, on actor: A, _ decoder: CallInvocationDecoder
    ) -> CallOperation? where A.ID == TrebuchetActorID {
        guard TargetNames.isMethod(target, of: A.self) else { return nil }
        return {
            var decoder = decoder
            let handler = CallResultHandler()
            try await self.executeDistributedTarget(
                on: actor, target: RemoteCallTarget(target), invocationDecoder: &decoder, handler: handler)
            return try handler.outcome()
        }
    }
}
