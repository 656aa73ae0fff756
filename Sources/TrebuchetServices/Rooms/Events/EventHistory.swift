/// The last events of a room, with increasing numbers.
struct EventHistory: Sendable {
    /// Identifies one counting of the events; it changes when the counting restarts or the room moves.
    let epoch: String
    private let earlier: [EventPosition]?
    /// The number of the last event; 0 before the first.
    private(set) var last = 0
    private(set) var events: [RoomEvent] = []
    private let maximumEvents: Int
    private let maximumBytes: Int
    private var bytes = 0

    /// Creates a history with a new epoch.
    ///
    /// - Parameters:
    ///   - before: the position in the previous epoch; nil for none.
    ///   - events: the events stored there, sorted by number.
    init(maximumEvents: Int, maximumBytes: Int, after before: EventPosition? = nil, events: [RoomEvent] = []) {
        self.maximumEvents = maximumEvents
        self.maximumBytes = maximumBytes
        epoch = RandomToken.make()
        earlier = before?.next(epoch).earlier
        self.events = events
        last = events.last?.number ?? 0
        bytes = events.reduce(0) { $0 + $1.payload.byteCount }
    }

    /// The current position.
    var position: EventPosition { EventPosition(epoch: epoch, last: last, earlier: earlier) }

    /// Appends an event and drops the oldest events above the limits; the newest is always kept.
    mutating func append(topic: String, peer: String, payload: EncodedJSON) -> RoomEvent {
        last += 1
        let event = RoomEvent(number: last, topic: topic, peer: peer, payload: payload)
        events.append(event)
        bytes += payload.byteCount
        var dropped = 0
        while events.count - dropped > max(1, maximumEvents) || bytes > maximumBytes && events.count - dropped > 1 {
            bytes -= events[dropped].payload.byteCount
            dropped += 1
        }
        events.removeFirst(dropped)
        return event
    }
}
