/// How far a reader of an ``EventWindow`` has come: makes of its states each event once, in order.
struct EventCursor: Equatable {
    /// What a state has brought.
    struct Progress: Equatable {
        var events: [RoomEvent] = []
        /// Numbers that have left the window before they were seen.
        var missed: Range<Int>?
    }

    private var epoch: String?
    private var last = 0

    /// Begins behind this, unless it has begun: a stream may begin later than its reader is known to others.
    mutating func begin(at position: EventPosition) {
        guard epoch == nil else { return }
        epoch = position.epoch
        last = position.last
    }

    /// Where nobody has told where to begin, the first state does: its events were published before.
    mutating func advance(to window: EventWindow) -> Progress {
        guard let epoch else {
            self.epoch = window.epoch
            last = window.last
            return Progress()
        }
        if epoch != window.epoch {
            // The room was made anew meanwhile: all of its events are news.
            self.epoch = window.epoch
            last = 0
        }
        let new = window.events.filter { $0.number > last }
        let first = new.first?.number ?? window.last + 1
        let missed = first > last + 1 ? last + 1..<first : nil
        last = max(last, window.last)
        return Progress(events: new, missed: missed)
    }
}
