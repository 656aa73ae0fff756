public import Distributed
internal import Relays
internal import TrebuchetWire

/// The way to observe the events of an actor, local or remote: `await game.observeMoves()`.
public struct EventObservation<A: DistributedActor, Event: Codable & Sendable>: Sendable
where A.ActorSystem == TrebuchetActorSystem {
    private let actor: A
    /// `observeMoves`
    public let name: String
    private let buffer: Int

    /// What `observeMoves` of an actor is; the macro makes it.
    ///
    /// - Parameters:
    ///   - name: `observeMoves`.
    ///   - buffer: unread events that are kept here. Default 256, at least 1; one more ends the stream with `overflow`.
    public init(_ actor: A, _ name: String, buffer: Int = 256) {
        self.actor = actor
        self.name = name
        self.buffer = max(1, buffer)
    }

    /// Begins to observe. The stream gives each event that is sent from when the server has begun it.
    ///
    /// It does not throw: the stream does, when the server ends it or an event is missed.
    public func callAsFunction() async -> EventStream<Event> {
        if let local: EventSubscription<Event> = await LocalStreams.events(of: actor, name, buffer: buffer) {
            return EventStream(.localEvents(local))
        }
        return EventStream(.remote(actor, name, reading: .events(buffer: buffer)))
    }
}

extension DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// Observes the events of an actor of which only a `@Resolvable` protocol is known:
    ///
    ///     extension Playing {
    ///         nonisolated var observeMoves: EventObservation<Self, Move> { events("observeMoves") }
    ///     }
    public nonisolated func events<Event: Codable & Sendable>(
        _ name: String, buffer: Int = 256
    ) -> EventObservation<Self, Event> {
        EventObservation(self, name, buffer: buffer)
    }
}
