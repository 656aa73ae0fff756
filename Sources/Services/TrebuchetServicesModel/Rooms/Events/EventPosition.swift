/// A position in the events of a room: the number of the last event within an epoch.
package struct EventPosition: Codable, Sendable, Equatable {
    /// Identifies one counting of the events. A room that is created again has another epoch and counts from 1.
    package let epoch: String
    /// The number of the last event; 0 before the first.
    package let last: Int
    /// The last positions of earlier epochs whose events the room still has, oldest first. Nil for none. At most `maximumEarlierIncarnations`.
    package var earlier: [EventPosition]?

    package init(epoch: String, last: Int, earlier: [EventPosition]? = nil) {
        self.epoch = epoch
        self.last = last
        self.earlier = earlier
    }

    /// The maximum number of earlier epochs.
    static let maximumEarlierIncarnations = 8

    /// The position with at most `maximumEarlierIncarnations` earlier epochs, so that no server can grow a client's memory.
    package var bounded: EventPosition {
        let newest = earlier?.suffix(Self.maximumEarlierIncarnations).map {
            EventPosition(epoch: $0.epoch, last: $0.last)
        }
        return EventPosition(epoch: epoch, last: last, earlier: newest)
    }

    /// Returns the same position as the start of another epoch.
    package func next(_ epoch: String) -> EventPosition {
        let before = (earlier ?? []) + [EventPosition(epoch: self.epoch, last: last)]
        return EventPosition(epoch: epoch, last: last, earlier: before.suffix(Self.maximumEarlierIncarnations))
    }
}
