public import Distributed
internal import Relays
internal import TrebuchetWire

/// Observes the events of an actor, local or remote: `await game.observeMoves()`.
public struct EventObservation<A: DistributedActor, Event: Codable & Sendable>: Sendable
where A.ActorSystem == TrebuchetActorSystem {
    private let actor: A
    /// The name on the wire, such as `observeMoves`.
    public let name: String
    private let buffer: Int

    /// Creates the value of an actor's `observeMoves`; the macro generates this call.
    ///
    /// - Parameters:
    ///   - name: the name on the wire, such as `observeMoves`.
    ///   - buffer: the number of unread events that are kept here. Default 256, at least 1, at most 1,048,576; one more ends
    ///     the stream with `overflow`.
    ///   - persisted: whether the events are persisted, so that all retained events may arrive at once.
    ///   - keeping: the number of persisted events, for which there is space in addition to the buffer. Default 1,000, at most
    ///     1,048,576.
    public init(_ actor: A, _ name: String, buffer: Int = 256, persisted: Bool = false, keeping: Int = 1_000) {
        self.actor = actor
        self.name = name
        let buffer = StreamDelivery.room(for: buffer)
        self.buffer = persisted ? buffer + max(buffer, StreamDelivery.room(for: keeping)) : buffer
    }

    /// Starts to observe. The stream delivers each event sent after the server has started it.
    ///
    /// The method does not throw. The stream does, if the server ends it or an event is missed.
    ///
    /// - Parameter onUndecodable: the treatment of an event that this program cannot decode. By default it is skipped and
    ///   reported. Events of an actor in this process are not decoded.
    public func callAsFunction(onUndecodable: UndecodableEvents = .skip) async -> EventStream<Event> {
        if let local: EventSubscription<Event> = await LocalStreams.events(of: actor, name, buffer: buffer) {
            return EventStream(.localEvents(local))
        }
        return EventStream(.remote(actor, name, reading: .events(buffer: buffer, onUndecodable: onUndecodable)))
    }

    /// Starts to observe after an event that was received before, perhaps in another process. The stream delivers each event
    /// sent since then.
    ///
    /// If some of them are no longer retained, or the numbering has restarted, the stream ends with `overflow`. The app then
    /// has to read the lost information elsewhere, such as from a state, and starts again with `nil`. Events that are not
    /// persisted are retained while their server runs and they have a subscriber, `buffer` at most.
    ///
    /// - Parameters:
    ///   - bookmark: the position, from `EventStream.bookmark`; nil to start with the next event.
    ///   - onUndecodable: the treatment of an event that this program cannot decode. By default it is skipped and reported, and
    ///     the bookmark moves past it. With `.end` the bookmark stays before it.
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
