internal import Bytes
internal import Distributed
internal import Networking
internal import TrebuchetWire

/// The record of an actor marked `@Trebuchet`, called through its dispatch table.
final class TypedActorRecord<A: TrebuchetActor>: ActorRecord, @unchecked Sendable {
    private let table: DispatchTable<A>
    /// Set for an exposed actor.
    private let held: A?
    /// For an actor that is reachable only because a reference to it was handed out.
    private weak var referred: A?

    init(_ actor: A, name: String, home: ReactorShard?, holding: Bool, persisted: PersistedStates?) {
        let table = A._dispatch
        self.table = table
        held = holding ? actor : nil
        referred = actor
        let methods = table.methods.enumerated().map { index, method in
            ActorMethod(
                name: method.name, index: index, arguments: method.arguments, generics: method.generics,
                isIdempotent: method.isIdempotent, body: home == nil ? nil : Self.body(method))
        }
        super.init(
            name: name, home: home, methods: methods, streamNames: table.streams.map(\.name),
            exposed: holding ? actor : nil, persisted: persisted)
    }

    override var actor: (any DistributedActor)? { held ?? referred }

    private func present() throws -> A {
        guard let actor = held ?? referred else {
            throw TrebuchetError(.actorNotFound, "actor '\(name)' is gone")
        }
        return actor
    }

    private static func body(_ method: DispatchMethod<A>) -> ActorMethod.Body? {
        guard case .inPlace(let body) = method.body else { return nil }
        // Right because neither difference changes how the function is called: `isolated` is a promise about the
        // caller, the one that `assumeIsolated` drops with a check in each call, and `A` is a class, passed as the same
        // single pointer as any object. The record passes its own actor, which is an `A`.
        return unsafeBitCast(body, to: ActorMethod.Body.self)
    }

    override func prepare(_ method: ActorMethod, _ arguments: inout CallArguments) throws -> CallOperation {
        let actor = try present()
        switch table.methods[method.index].body {
        case .suspending(let prepare):
            let operation = try prepare(&arguments)
            return begin(actor, operation)
        case .inPlace:
            throw TrebuchetError(.internal, "\(method.name) is synchronous and was asked to run in a task")
        }
    }

    /// The operation, with a note of the moment when it begins inside the actor's isolation.
    private func begin(_ actor: A, _ operation: @escaping DispatchMethod<A>.Operation) -> CallOperation {
        {
            let result = try await actor.whenLocal { actor in
                if self.home != nil {
                    self.starting -= 1
                    return try await operation(actor)
                }
                // Its caller sees what the call has changed before the answer, also when it throws.
                defer { self.table.publishMarked(actor) }
                return try await operation(actor)
            }
            guard let result else { throw TrebuchetError(.internal, "actor '\(self.name)' is not local") }
            return result
        }
    }

    override func isolated(_ body: @escaping @Sendable () throws -> CallResult) throws -> CallOperation {
        let actor = try present()
        return begin(actor) { _ in try body() }
    }

    override func executeTarget(
        _ target: String, _ decoder: CallInvocationDecoder, in system: TrebuchetActorSystem
    ) -> CallOperation? {
        guard let actor = held ?? referred, let operation = system.operation(of: target, on: actor, decoder) else {
            return nil
        }
        // When it begins cannot be told from here; later calls go behind it until it has ended.
        return {
            let outcome: Result<CallResult, any Error>
            do {
                outcome = .success(try await operation())
            } catch {
                outcome = .failure(error)
            }
            await actor.whenLocal { actor in
                if self.home != nil { self.starting -= 1 } else { self.table.publishMarked(actor) }
            }
            return try outcome.get()
        }
    }

    override func executeStreamingTarget(_ stream: String, _ body: @escaping @Sendable ((any AnyStateSource)?) -> Void)
    {
        guard let actor = held ?? referred, let found = table.streams.first(where: { $0.name == stream }) else {
            return body(nil)
        }
        guard let home else {
            Task { await actor.whenLocal { body(found.source($0, nil)) } }
            return
        }
        home.reactor.run {
            // The actor's executor is this reactor, and `run` runs on it.
            actor.assumeIsolated { body(found.source($0, home)) }
        }
    }
}
