internal import Bytes
internal import Distributed
internal import Networking
internal import TrebuchetWire

/// The record of an actor marked `@Trebuchet`, called through its dispatch table.
final class TypedActorRecord<A: TrebuchetActor>: ActorRecord, @unchecked Sendable {
    /// `isolated` is a promise about who calls and does not change how a function is called: the same conversion that
    /// `assumeIsolated` makes, without its check in each call. Whoever calls has to be on the actor's reactor.
    private typealias Unisolated = @Sendable (A, inout CallArguments, inout CallReply) throws -> Void

    private let table: DispatchTable<A>
    private let bodies: [Unisolated?]
    /// Set for an exposed actor.
    private let held: A?
    /// `held` without counting references: an actor that is weakly referred to anywhere pays for each count with an
    /// atomic operation through a side table.
    private let heldUnmanaged: Unmanaged<A>?
    /// For an actor that is reachable only because a reference to it was handed out.
    private weak var referred: A?

    init(_ actor: A, name: String, home: ReactorShard?, holding: Bool) {
        let table = A._dispatch
        self.table = table
        let bodies: [Unisolated?] = table.methods.map { method in
            guard home != nil, case .inPlace(let body) = method.body else { return nil }
            // See `Unisolated` for why this is right.
            return unsafeBitCast(body, to: Unisolated.self)
        }
        self.bodies = bodies
        held = holding ? actor : nil
        heldUnmanaged = holding ? .passUnretained(actor) : nil
        referred = actor
        let methods = table.methods.enumerated().map { index, method in
            ActorMethod(
                name: method.name, index: index, arguments: method.arguments, generics: method.generics,
                runsInPlace: bodies[index] != nil)
        }
        super.init(name: name, home: home, methods: methods, streamNames: table.streams.map(\.name))
    }

    override var actor: (any DistributedActor)? { held ?? referred }

    private func present() throws -> A {
        guard let actor = held ?? referred else {
            throw TrebuchetError(.actorNotFound, "actor '\(name)' is gone")
        }
        return actor
    }

    override func call(_ method: ActorMethod, _ arguments: inout CallArguments, _ reply: inout CallReply) throws {
        assert(home?.reactor.isCurrent == true)
        let body = bodies[method.index].unsafelyUnwrapped
        if let heldUnmanaged {
            return try heldUnmanaged._withUnsafeGuaranteedRef { try body($0, &arguments, &reply) }
        }
        try body(present(), &arguments, &reply)
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
                if self.home != nil { self.starting -= 1 }
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

    override func withSource(of stream: String, _ body: @escaping @Sendable ((any AnyStateSource)?) -> Void) {
        guard let actor = held ?? referred, let found = table.streams.first(where: { $0.name == stream }) else {
            return body(nil)
        }
        guard let home else {
            Task { await actor.whenLocal { body(found.cell($0).anySource(home: nil)) } }
            return
        }
        home.reactor.run {
            // The actor's executor is this reactor, and `run` runs on it.
            actor.assumeIsolated { body(found.cell($0).anySource(home: home)) }
        }
    }
}
