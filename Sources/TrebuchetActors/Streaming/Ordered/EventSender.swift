/// Sends the events of a `@StreamedEvents` property. Written by the macro: `@StreamedEvents var moves: Move` is sent with
/// `$moves.send(.left)`.
///
/// It belongs to its actor and is used in the actor's isolation alone.
public final class EventSender<Event: Codable & Sendable> {
    private let buffer: Int
    /// Nil until somebody observes.
    private var source: EventSource<Event>?

    /// - Parameter buffer: events that are kept for subscribers who are behind.
    public init(buffer: Int = 256) { self.buffer = buffer }

    deinit { source?.end() }

    /// Sends an event to all who observe now, in the order of these calls. It costs nothing while nobody does.
    public func send(_ event: Event) { source?.send(event) }

    /// The source, made at the first use.
    func source(home: SystemShard?) -> EventSource<Event> {
        if let source { return source }
        let made = EventSource<Event>(buffer: buffer, home: home)
        source = made
        return made
    }

    /// What letting go of its actor would lose.
    var usage: StreamUsage { StreamUsage(hasChanged: false, isObserved: source?.isObserved ?? false) }

    /// How many events a subscriber may be behind.
    var bufferLimit: Int { buffer }
}
