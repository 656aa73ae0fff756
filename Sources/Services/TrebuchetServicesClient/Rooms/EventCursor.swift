/// The progress of a client in the events of a room. It turns the received events into each event once, in order.
struct EventCursor: Equatable {
    private var epoch: String?
    /// The lives before it that the room has named.
    private var earlier: [EventPosition] = []
    /// The number of the last event that was seen; nil as long as it is not known where to begin.
    private(set) var last: Int?

    /// The client has joined the room, perhaps again. All events published after its first join are for it.
    ///
    /// - Returns: true when the room that the client knows has ended and this is a new one, so that events may be missing.
    @discardableResult
    mutating func joined(at position: EventPosition) -> Bool {
        let position = position.bounded
        defer { (epoch, earlier) = (position.epoch, position.earlier ?? []) }
        switch epoch {
        // Not below 0, whatever the server sends, so that arithmetic on it cannot overflow.
        case nil: last = max(0, position.last)
        case position.epoch: break
        default:
            guard let shared = shared(with: position) else {
                last = 0
                return true
            }
            // The room has moved, and may have lost its last events.
            last = min(last ?? 0, shared)
        }
        return false
    }

    /// The number of the last event that the room had in an incarnation known here as well; nil when there is none. The newest of these
    /// counts: a room that was restored knows an earlier one only.
    private func shared(with position: EventPosition) -> Int? {
        let known = (position.earlier ?? []) + [position]
        for incarnation in [EventPosition(epoch: epoch ?? "", last: .max)] + earlier.reversed() {
            if let found = known.last(where: { $0.epoch == incarnation.epoch }) {
                return max(0, min(incarnation.last, found.last))
            }
        }
        return nil
    }

    /// The room was joined before its events were observed: events up to `number` are skipped.
    mutating func reset(after number: Int, in epoch: String?) {
        guard last == nil else { return }
        (last, self.epoch) = (max(0, number), epoch)
    }

    /// Returns whether no event is missing between the last seen one and `event`.
    func continues(with event: RoomEvent) -> Bool {
        let last = last ?? 0
        return event.number <= last || event.number - 1 == last
    }

    /// Returns the new events of a sorted list, and the number of missed events before them.
    mutating func advance(over events: [RoomEvent]) -> (events: [RoomEvent], missed: Int) {
        guard let last else { return ([], 0) }
        let new = events.filter { $0.number > last }
        guard let first = new.first, let newest = new.last else { return ([], 0) }
        self.last = newest.number
        return (new, first.number - last - 1)
    }
}
