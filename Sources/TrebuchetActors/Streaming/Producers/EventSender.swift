internal import Relays

/// Sends the events of a `@StreamedEvents` property. Written by the macro: `@StreamedEvents var moves: Move` is sent with
/// `$moves.send(.left)`.
///
/// It belongs to its actor and is used in the actor's isolation alone.
public final class EventSender<Event: Codable & Sendable> {
    private let buffer: Int
    /// Those who observe from outside; nil until somebody does.
    private var source: EventSource?
    /// Those in this process; nil until there is one.
    private var local: EventRelay<Event>?

    /// - Parameter buffer: events that are kept for subscribers who are behind.
    public init(buffer: Int = 256) { self.buffer = buffer }

    deinit {
        local?.finish()
        source?.end()
    }

    /// Sends an event to all who observe now, in the order of these calls. It costs nothing while nobody does.
    public func send(_ event: Event) {
        local?.send(event)
        source?.send(event)
    }

    /// The source, made at the first use.
    ///
    /// - Parameter entry: runs work in the actor's isolation, soon.
    func source(home: SystemShard?, entry: @autoclosure () -> StreamHub.Entry) -> EventSource {
        if let source { return source }
        let made = EventSource(buffer: buffer, home: home, entry: entry())
        source = made
        return made
    }

    /// What readers in this process follow; made at the first use.
    var readers: EventRelay<Event> {
        if let local { return local }
        let made = EventRelay<Event>()
        local = made
        return made
    }

    /// What letting go of its actor would lose.
    var usage: StreamUsage { StreamUsage(hasChanged: false, isObserved: source?.isObserved ?? false) }
}
