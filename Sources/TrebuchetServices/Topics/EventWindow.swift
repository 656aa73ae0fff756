/// The last events of a room, with increasing numbers: a state that carries events.
///
/// Who follows it sees each event, unless so many come at once that the window has moved on; an ``EventCursor`` notices.
struct EventWindow: Codable, Sendable, Equatable {
    private enum CodingKeys: CodingKey { case epoch, last, events }

    /// Another one when the counting has begun anew.
    let epoch: String
    /// The number of the last event; 0 before the first.
    private(set) var last = 0
    private(set) var events: [RoomEvent] = []
    private var maximumEvents = 0
    private var maximumBytes = 0
    private var bytes = 0
    private var sizes: [Int] = []

    init(maximumEvents: Int, maximumBytes: Int, epoch: String = String(UInt64.random(in: 0...UInt64.max), radix: 36)) {
        self.maximumEvents = maximumEvents
        self.maximumBytes = maximumBytes
        self.epoch = epoch
    }

    /// Adds an event and drops the oldest that are too many; the newest stays in any case.
    @discardableResult
    mutating func append(topic: String, peer: String, payload: JSONValue, bytes count: Int) -> Int {
        last += 1
        events.append(RoomEvent(number: last, topic: topic, peer: peer, payload: payload))
        sizes.append(count)
        bytes += count
        var dropped = 0
        while events.count - dropped > max(1, maximumEvents) || bytes > maximumBytes && events.count - dropped > 1 {
            bytes -= sizes[dropped]
            dropped += 1
        }
        events.removeFirst(dropped)
        sizes.removeFirst(dropped)
        return last
    }

    /// Where it is now.
    var position: EventPosition { EventPosition(epoch: epoch, last: last) }

    static func == (a: Self, b: Self) -> Bool { a.epoch == b.epoch && a.last == b.last && a.events == b.events }
}

/// A place in the events of a room: behind the last one so far.
struct EventPosition: Codable, Sendable, Equatable {
    let epoch: String
    let last: Int
}
