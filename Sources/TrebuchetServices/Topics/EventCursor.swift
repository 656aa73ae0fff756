/// How far a client has come in the events of a room: makes of what it hears each event once, in order.
struct EventCursor: Equatable {
    private var epoch: String?
    /// The number of the last event that was seen; nil as long as it is not known where to begin.
    private(set) var last: Int?

    /// The room was joined, perhaps again, in this epoch.
    mutating func joined(_ epoch: String) {
        // The room was made anew meanwhile: all of its events are news.
        if self.epoch != nil, self.epoch != epoch { last = 0 }
        self.epoch = epoch
    }

    /// What was published up to this event was not for this client.
    mutating func begin(after number: Int) {
        if last == nil { last = number }
    }

    /// Of events in their order, those that are new; and how many before them were missed.
    mutating func advance(over events: [RoomEvent]) -> (events: [RoomEvent], missed: Int) {
        guard let last else { return ([], 0) }
        let new = events.filter { $0.number > last }
        guard let first = new.first, let newest = new.last else { return ([], 0) }
        self.last = newest.number
        return (new, first.number - last - 1)
    }
}
