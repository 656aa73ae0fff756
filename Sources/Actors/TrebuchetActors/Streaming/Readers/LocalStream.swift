internal import Distributed

/// One stream of an actor, looked up by name by readers in the actor's process.
protocol LocalStream: Sendable {
    /// Runs a body in the actor's isolation; nil if the actor is remote or released.
    func perform<Found: Sendable>(_ body: @Sendable (LocalStreamBody) -> Found?) async -> Found?
}

/// The parts of the stream that a body receives. Used in the actor's isolation.
typealias LocalStreamBody = (
    /// The shard of the actor's reactor, or the first shard for an actor without one; nil in a process without reactors.
    loop: SystemShard?,
    /// Returns the producer that connections observe.
    hub: () -> StreamProducer,
    /// Returns the source for readers in this process: `LocalStates` of the state's type, or `EventRelay` of the event type.
    readers: () -> AnyObject
)

/// Finds the streams of actors in this process.
enum LocalStreams {
    /// Returns the stream; nil if the actor has no stream with this name or no dispatch table.
    static func find<A: DistributedActor>(_ name: String, of actor: A) -> (any LocalStream)?
    where A.ActorSystem == TrebuchetActorSystem {
        func find<Typed: TrebuchetActor>(_ actor: Typed) -> (any LocalStream)? {
            Typed.dispatch.streams.first { $0.name == name }.map { ResolvedLocalStream(actor: actor, stream: $0) }
        }
        return (actor as? any TrebuchetActor).flatMap { find($0) }
    }
}

/// A stream that was found by name. It does not retain its actor.
private struct ResolvedLocalStream<A: TrebuchetActor>: LocalStream {
    weak let actor: A?
    let stream: _DispatchStream<A>

    func perform<Found: Sendable>(_ body: @Sendable (LocalStreamBody) -> Found?) async -> Found? {
        let stream = stream
        return await actor?.whenLocal { actor in
            let system = actor.actorSystem
            let home = system.home(of: actor)
            return body((home ?? system.shards.first, { stream.hub(actor, home) }, { stream.readers(actor, home) }))
        } ?? nil
    }
}
