internal import Bytes
internal import Distributed
internal import Transports
internal import TrebuchetWire

/// The record of an actor marked `@Trebuchet`, called through its dispatch table.
final class TypedActorRecord<A: TrebuchetActor>: ActorRecord, @unchecked Sendable {
    /// Set for an exposed actor.
    private let strongActor: A?
    /// Set for an actor that clients can reach only through an exported reference.
    private weak var referred: A?

    init(
        _ actor: A, name: String, home: SystemShard?, instance: ActorInstance, holding: Bool,
        persisted: PersistedStates?
    ) {
        strongActor = holding ? actor : nil
        referred = holding ? nil : actor
        super.init(
            name: name, type: ActorTypes.entry(of: A.self), home: home, actorInstance: instance,
            exposed: holding ? actor : nil,
            persisted: persisted)
    }

    override var actor: (any DistributedActor)? { strongActor ?? referred }

    private var table: _DispatchTable<A> { type.dispatchTable(of: A.self) }

    func present() throws -> A {
        guard let actor = strongActor ?? referred else { throw notFoundError }
        return actor
    }

    /// Returns the operation, which counts the call as running when it enters the actor's isolation.
    func trackedOperation(_ actor: A, _ operation: @escaping _DispatchMethod<A>.Operation) -> CallOperation {
        { isolation in
            try await Self.enter(actor, isolation: isolation) { actor in
                if self.home != nil {
                    self.actorInstance.didBegin()
                    return try await operation(actor)
                }
                // The changes of the call are published before its response, even if it throws.
                defer { self.table.publishMarked(actor) }
                return try await operation(actor)
            }
        }
    }

    /// Runs an operation in its actor's isolation. Unlike `whenLocal`, it does not switch to the pool on the way.
    private static func enter(
        _ actor: A, isolation: isolated (any Actor)?, _ operation: @escaping _DispatchMethod<A>.Operation
    ) async throws -> _CallResult {
        guard __isLocalActor(actor) else {
            throw TrebuchetError(.internal, "actor '\(actor.id)' is exposed but not local")
        }
        // Right because neither difference changes the calling convention. Locality is a promise about the caller, which the
        // line above checks. A function with an isolated parameter switches to the actor's executor itself.
        return try await unsafeBitCast(operation, to: (@Sendable (A) async throws -> _CallResult).self)(actor)
    }

    override func isolated(_ body: @escaping @Sendable () throws -> _CallResult) throws -> CallOperation {
        let actor = try present()
        return trackedOperation(actor) { _ in try body() }
    }

    override func checkIdle(discarding: Bool, _ body: @escaping @Sendable (Bool) -> Void) {
        guard let actor = strongActor ?? referred else { return body(true) }
        let (table, isPersisted) = (table, persisted != nil)
        let canDeactivate: @Sendable (isolated A) -> Bool = { actor in
            table.streams.allSatisfy { stream in
                let usage = stream.usage(actor)
                // A state declared as persisted is not persisted at a server without a store.
                let mayDeactivate = !usage.hasChanged || isPersisted && stream.persistence != nil || discarding
                return !usage.isObserved && mayDeactivate
            }
        }
        guard let home else {
            Task { body(await actor.whenLocal(canDeactivate) ?? true) }
            return
        }
        home.reactor.run {
            // The actor's executor is this reactor, and `run` runs on it.
            body(actor.assumeIsolated { canDeactivate($0) })
        }
    }

    override var hasActivation: Bool { table.activate != nil }

    override func activate() async throws {
        guard let activate = table.activate else { return }
        _ = try await present().whenLocal { try await activate($0) }
    }

    override var hasDeactivation: Bool { table.deactivate != nil }

    override func deactivate() async throws {
        guard let actor = strongActor ?? referred, let deactivate = table.deactivate else { return }
        _ = try await actor.whenLocal { try await deactivate($0) }
    }

    override func deliverAlarm(_ due: DueAlarm) async throws {
        guard let alarm = table.alarm, let persisted, let alarms = persisted.alarms, actorInstance.enter() else {
            throw notFoundError
        }
        defer { actorInstance.removeUser() }
        _ = try await present().whenLocal { actor in
            // Another method may have cancelled it, and a call that waited for the actor may begin too late.
            guard try alarms.begin(due) else { return }
            defer { alarms.end(due) }
            try await alarm(actor, due.alarm)
            // In the turn in which the method has ended, so that one write has both.
            if alarms.complete(due) { persisted.home.counts.count(.alarmsDelivered) }
        }
    }

    override func beginStream(
        _ stream: String, for connection: CallerConnection?,
        _ body: @escaping @Sendable (Result<StreamProducer?, any Error>) -> Void
    ) {
        guard type.isGated, let actor = strongActor ?? referred else {
            return executeStreamingTarget(stream) { body(.success($0)) }
        }
        guard let home else {
            return body(.failure(TrebuchetError(.internal, "actor '\(name)' reads its observers but has no reactor")))
        }
        let found = table.streams.first { $0.name == stream }
        home.reactor.run {
            // The actor's executor is this reactor, and `run` runs on it.
            actor.assumeIsolated { actor in
                if let refusal = actor._refusal(ofStream: stream, to: connection) {
                    body(.failure(refusal))
                } else {
                    body(.success(found?.hub(actor, home)))
                }
            }
        }
    }

    override func executeStreamingTarget(_ stream: String, _ body: @escaping @Sendable (StreamProducer?) -> Void) {
        guard let actor = strongActor ?? referred, let found = table.streams.first(where: { $0.name == stream }) else {
            return body(nil)
        }
        guard let home else {
            Task { await actor.whenLocal { body(found.hub($0, nil)) } }
            return
        }
        home.reactor.run {
            // The actor's executor is this reactor, and `run` runs on it.
            actor.assumeIsolated { body(found.hub($0, home)) }
        }
    }

    override func endClientStreams(_ error: TrebuchetError, _ completion: @escaping @Sendable () -> Void) {
        guard let actor = strongActor ?? referred else { return completion() }
        let end: @Sendable (isolated A) -> Void = { [table, home] actor in
            for stream in table.streams where stream.usage(actor).isObserved {
                stream.hub(actor, home).endClientStreams(error)
            }
            completion()
        }
        guard let home else {
            Task { await actor.whenLocal(end) }
            return
        }
        home.reactor.run {
            // The actor's executor is this reactor, and `run` runs on it.
            actor.assumeIsolated { end($0) }
        }
    }
}
