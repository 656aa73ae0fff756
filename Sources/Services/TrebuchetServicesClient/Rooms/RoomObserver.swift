/// A receiver of one room's state for a shared value. Only one task of the room calls it at a time.
protocol RoomObserver: AnyObject, Sendable {
    /// The topic whose events the feed receives; nil for none.
    var topic: String? { get }

    func applyStatus(_ status: RoomStatus)
    func applyRoster(_ roster: Roster, without own: Set<String>)
    func receive(_ event: RoomEvent)
    func missed(_ count: Int)
    /// The room has ended and was created again while the client was away.
    func restarted()
}

extension RoomObserver {
    var topic: String? { nil }
    func applyRoster(_ roster: Roster, without own: Set<String>) {}
    func receive(_ event: RoomEvent) {}
    func missed(_ count: Int) {}
    func restarted() {}
}

/// The state of a room at the client.
struct RoomStatus {
    var isJoined = false
    /// True when a roster has been received.
    var hasRoster = false
    /// True when events are observed.
    var hasEvents = false
    var error: (any Error)?
}

extension RoomStatus: Equatable {
    static func == (a: Self, b: Self) -> Bool {
        a.isJoined == b.isJoined && a.hasRoster == b.hasRoster && a.hasEvents == b.hasEvents
            && isSameError(a.error, b.error)
    }
}

/// Returns whether two errors are equal by their reflected text, the only comparison that works for all error types.
func isSameError(_ one: (any Error)?, _ other: (any Error)?) -> Bool {
    switch (one, other) {
    case (nil, nil): true
    case (let one?, let other?): String(reflecting: one) == String(reflecting: other)
    default: false
    }
}
