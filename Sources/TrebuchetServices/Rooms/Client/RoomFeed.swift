/// What shows a room in a shared value. Called by one task of the room at a time.
protocol RoomFeed: AnyObject, Sendable {
    /// The topic whose events it wants; nil for none.
    var topic: String? { get }

    func show(_ status: RoomStatus)
    func show(_ roster: Roster, without own: Set<String>)
    func receive(_ event: RoomEvent)
    func missed(_ count: Int)
}

extension RoomFeed {
    var topic: String? { nil }
    func show(_ roster: Roster, without own: Set<String>) {}
    func receive(_ event: RoomEvent) {}
    func missed(_ count: Int) {}
}

/// How a client stands with a room.
struct RoomStatus {
    var isJoined = false
    /// Who is there has been heard of.
    var hasRoster = false
    /// Events are listened to.
    var hasEvents = false
    var error: (any Error)?
}

extension RoomStatus: Equatable {
    static func == (a: Self, b: Self) -> Bool {
        a.isJoined == b.isJoined && a.hasRoster == b.hasRoster && a.hasEvents == b.hasEvents
            && isSameError(a.error, b.error)
    }
}

/// Whether two errors say the same: there is no other way to compare errors of any type.
func isSameError(_ one: (any Error)?, _ other: (any Error)?) -> Bool {
    switch (one, other) {
    case (nil, nil): true
    case (let one?, let other?): String(reflecting: one) == String(reflecting: other)
    default: false
    }
}
