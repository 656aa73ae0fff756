internal import Relays

/// Sends the events of a `@StreamedEvents` property. Written by the macro: `@StreamedEvents var moves: Move` is sent with
/// `$moves.send(.left)`.
///
/// It belongs to its actor and is used in the actor's isolation alone.
public final class EventSender<Event: Codable & Sendable> {
    private let buffer: Int
    /// How many a store keeps of them, when they are persisted.
    let keeping: Int
    /// Those who observe from outside; nil until somebody does.
    private var source: EventSource?
    /// Those in this process; nil until there is one.
    private var local: EventRelay<Event>?

    /// - Parameters:
    ///   - buffer: events that are kept for subscribers who are behind: at least 1, at most 1,048,576.
    ///   - persisted: whether the server's store keeps them. Read by the macro.
    ///   - keeping: how many of them it keeps at least, within the same bounds.
    public init(buffer: Int = 256, persisted: Bool = false, keeping: Int = 1_000) {
        self.buffer = StreamDelivery.room(for: buffer)
        self.keeping = StreamDelivery.room(for: keeping)
    }

    deinit {
        local?.finish()
        source?.end()
    }

    /// Sends an event to all who observe now, in the order of these calls. It costs nothing while nobody does, unless it is persisted:
    /// then those at other processes get it when it is written.
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

    /// The same, and whether it was not there before.
    func persisted(home: SystemShard, entry: @autoclosure () -> StreamHub.Entry) -> (source: EventSource, isNew: Bool) {
        let isNew = source == nil
        return (source(home: home, entry: entry()), isNew)
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
