internal import Platform

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

    /// Returns the number of events that an event with so many bytes drops.
    func droppedCount(appending added: Int) -> Int {
        var (dropped, bytes) = (0, bytes + added)
        while events.count + 1 - dropped > max(1, maximumEvents) || bytes > maximumBytes && dropped < events.count {
            bytes -= events[dropped].payload.byteCount
            dropped += 1
        }
        return dropped
    }

    /// Appends an event and drops the oldest events above the limits; the newest is always kept.
    mutating func append(topic: String, peer: String, payload: EncodedJSON) -> RoomEvent {
        let dropped = droppedCount(appending: payload.byteCount)
        bytes += payload.byteCount - events[..<dropped].reduce(0) { $0 + $1.payload.byteCount }
        events.removeFirst(dropped)
        last += 1
        let event = RoomEvent(number: last, topic: topic, peer: peer, payload: payload)
        events.append(event)
        return event
    }
}

extension RoomEvent {
    /// The bytes that a stored event counts.
    var storedBytes: Int { Self.storedBytes(topic: topic, payload) }

    static func storedBytes(topic: String, _ payload: EncodedJSON) -> Int {
        payload.byteCount + topic.utf8.count + overhead
    }

    private static let overhead = 256
}
