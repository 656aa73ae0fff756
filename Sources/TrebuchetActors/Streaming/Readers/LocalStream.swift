internal import Distributed

/// One stream of an actor, by its name, as readers in the actor's process find it.
protocol LocalStream: Sendable {
    /// Runs a body in the actor's isolation; nil when the actor is remote, or gone.
    func perform<Found: Sendable>(_ body: @Sendable (StreamHere) -> Found?) async -> Found?
}

/// It as a body gets it. In the actor's isolation.
typealias StreamHere = (
    /// The reactor that the actor lives on, or the one that stands in for it; nil in a process without any.
    loop: SystemShard?,
    /// What connections observe.
    hub: () -> StreamHub,
    /// What readers in this process follow: `LocalStates` of the state's type, or `EventRelay` of the events'.
    readers: () -> AnyObject
)

enum LocalStreams {
    /// Nil when the actor has no stream of that name, or is none with a dispatch table.
    static func find<A: DistributedActor>(_ name: String, of actor: A) -> (any LocalStream)?
    where A.ActorSystem == TrebuchetActorSystem {
        func find<Typed: TrebuchetActor>(_ actor: Typed) -> (any LocalStream)? {
            Typed.dispatch.streams.first { $0.name == name }.map { FoundStream(actor: actor, stream: $0) }
        }
        return (actor as? any TrebuchetActor).flatMap { find($0) }
    }
}

/// Does not hold its actor.
private struct FoundStream<A: TrebuchetActor>: LocalStream {
    weak let actor: A?
    let stream: _DispatchStream<A>

    func perform<Found: Sendable>(_ body: @Sendable (StreamHere) -> Found?) async -> Found? {
        let stream = stream
        return await actor?.whenLocal { actor in
            let system = actor.actorSystem
            let home = system.home(of: actor)
            return body((home ?? system.shards.first, { stream.hub(actor, home) }, { stream.readers(actor, home) }))
        } ?? nil
    }
}
