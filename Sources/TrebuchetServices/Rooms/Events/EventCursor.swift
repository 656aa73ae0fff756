/// A place in the events of a room: behind the last one so far.
struct EventPosition: Codable, Sendable, Equatable {
    /// Another one when the room has been made anew since, and its events are counted from 1 again.
    let epoch: String
    /// The number of the last event; 0 before the first.
    let last: Int
    /// The places of the lives before, as far as the room has what they had; the oldest first. Nil for none. At most `mostEarlier`.
    var earlier: [EventPosition]?

    /// Lives that are known beside the one that goes on.
    static let mostEarlier = 8

    /// The same events in another life, which begins here.
    func next(_ epoch: String) -> EventPosition {
        let before = (earlier ?? []) + [EventPosition(epoch: self.epoch, last: last)]
        return EventPosition(epoch: epoch, last: last, earlier: before.suffix(Self.mostEarlier))
    }
}

/// How far a client has come in the events of a room: makes of what it hears each event once, in order.
struct EventCursor: Equatable {
    private var epoch: String?
    /// The lives before it that the room has named.
    private var earlier: [EventPosition] = []
    /// The number of the last event that was seen; nil as long as it is not known where to begin.
    private(set) var last: Int?

    /// The room was joined, perhaps again. From the first time on others know of the client, and what they publish is for it too.
    mutating func joined(at position: EventPosition) {
        switch epoch {
        // Not below 0, whatever a server says: what is counted from it stays within an integer.
        case nil: last = max(0, position.last)
        case position.epoch: break
        // The room has moved, and may have lost what it had last; or it was made anew, and all of its events are news.
        default: last = min(last ?? 0, shared(with: position))
        }
        (epoch, earlier) = (position.epoch, position.earlier ?? [])
    }

    /// The number of the last event that the room had in a life known here as well. The newest such life counts: a room that was
    /// restored knows an earlier one only.
    private func shared(with position: EventPosition) -> Int {
        let theirs = (position.earlier ?? []) + [position]
        for life in [EventPosition(epoch: epoch ?? "", last: .max)] + earlier.reversed() {
            if let found = theirs.last(where: { $0.epoch == life.epoch }) { return max(0, min(life.last, found.last)) }
        }
        return 0
    }

    /// The room had been joined before its events were of interest: those up to this one are not.
    mutating func begin(after number: Int, in epoch: String?) {
        guard last == nil else { return }
        (last, self.epoch) = (max(0, number), epoch)
    }

    /// Whether nothing lies between what was seen and an event.
    func continues(with event: RoomEvent) -> Bool {
        let last = last ?? 0
        return event.number <= last || event.number - 1 == last
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
