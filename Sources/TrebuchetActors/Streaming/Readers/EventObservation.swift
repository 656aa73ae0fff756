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
    ///   - buffer: unread events that are kept here. Default 256, at least 1, at most 1,048,576; one more ends the stream with `overflow`.
    ///   - persisted: whether the events are persisted, so that as many as are kept may come at once.
    ///   - keeping: how many persisted events are kept, which there is room for beside the buffer. Default 1,000, at most
    ///     1,048,576.
    public init(_ actor: A, _ name: String, buffer: Int = 256, persisted: Bool = false, keeping: Int = 1_000) {
        self.actor = actor
        self.name = name
        let buffer = StreamDelivery.room(for: buffer)
        self.buffer = persisted ? buffer + max(buffer, StreamDelivery.room(for: keeping)) : buffer
    }

    /// Begins to observe. The stream gives each event that is sent from when the server has begun it.
    ///
    /// It does not throw: the stream does, when the server ends it or an event is missed.
    ///
    /// - Parameter onUndecodable: what becomes of an event that this program cannot decode. By default it is left out and reported. Of an
    ///   actor in this process nothing has to be decoded.
    public func callAsFunction(onUndecodable: UndecodableEvents = .skip) async -> EventStream<Event> {
        if let local: EventSubscription<Event> = await LocalStreams.events(of: actor, name, buffer: buffer) {
            return EventStream(.localEvents(local))
        }
        return EventStream(.remote(actor, name, reading: .events(buffer: buffer, onUndecodable: onUndecodable)))
    }

    /// Begins to observe behind an event that was seen before, in another process perhaps. The stream gives each that was sent
    /// since, and then each that is.
    ///
    /// When some of them are not kept any more, or the events are counted anew, it ends with `overflow`: then what they told has to be
    /// found out otherwise, as from a state, and `nil` begins again. Events that are not persisted are kept for as long as their
    /// server runs and somebody observes them, `buffer` at most.
    ///
    /// - Parameters:
    ///   - bookmark: the place, from `EventStream.bookmark`; nil to begin with the next event.
    ///   - onUndecodable: what becomes of an event that this program cannot decode. By default it is left out and reported, and the
    ///     bookmark moves behind it. With `.end` the bookmark stays before it.
    public func callAsFunction(
        since bookmark: EventBookmark?, onUndecodable: UndecodableEvents = .skip
    ) async -> EventStream<Event> {
        if let local = await LocalStreams.events(of: actor, name, since: bookmark, buffer: buffer, onUndecodable) {
            return EventStream(.encoded(local))
        }
        return EventStream(
            .remote(actor, name, reading: .events(buffer: buffer, since: bookmark, onUndecodable: onUndecodable)))
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
