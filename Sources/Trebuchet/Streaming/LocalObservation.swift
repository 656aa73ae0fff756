internal import Distributed
internal import Relays

/// Observing a state of an actor in this process: versions come from the state's source, values are read in the
/// actor's isolation when the reader asks.
struct LocalObservation<Value: Codable & Sendable>: Sendable {
    let versions: StateRelay<UInt64>
    /// The value with its version; nil when the actor has gone.
    let read: @Sendable () async -> (value: Value, version: UInt64)?

    /// Nil when the actor is remote, or has no state of that name and type.
    static func begin<A: DistributedActor>(_ actor: A, _ name: String, _ type: Value.Type) async -> Self?
    where A.ActorSystem == TrebuchetActorSystem {
        guard let actor = actor as? any TrebuchetActor else { return nil }
        return await begin(typed: actor, name)
    }

    private static func begin<A: TrebuchetActor>(typed actor: A, _ name: String) async -> Self? {
        guard let stream = A._dispatch.streams.first(where: { $0.name == name }) else { return nil }
        return await actor.whenLocal { actor in
            let home = actor.actorSystem.home(of: actor)
            guard let source = stream.source(actor, home) as? StateSource<Value> else { return nil }
            return Self(versions: source.versions) { [weak actor] in
                guard let actor else { return nil }
                return await actor.whenLocal { _ in source.snapshot } ?? nil
            }
        } ?? nil
    }
}
