/// A bounded first-in, first-out queue of the unread events of one subscriber.
@usableFromInline
struct EventQueue<Event: Sendable>: Sendable {
    /// The next action of a reader.
    @usableFromInline
    enum Step: Sendable {
        case event(Event)
        case overflow(EventOverflow)
        case end
    }

    /// The fate of an offered event, so that the caller can wake readers and release events outside its lock.
    @usableFromInline
    enum Outcome: Sendable {
        case appended
        case dropped(Event)
        /// The event did not fit and the subscription has ended.
        case failed
        case ignored
    }

    /// The reason why the queue accepts no more events.
    @usableFromInline
    enum Ending: Sendable {
        case finished
        case overflown
    }

    @usableFromInline let limit: Int
    @usableFromInline let policy: EventOverflowPolicy
    /// The number of events lost to overflow, including the one that ended the subscription.
    @usableFromInline var droppedCount: UInt64 = 0
    @usableFromInline var ending: Ending?
    /// A ring buffer that grows to `limit` only on demand: most subscribers keep their buffers short.
    @usableFromInline var ring: [Event?] = []
    @usableFromInline var head = 0
    @usableFromInline var count = 0

    @inlinable
    init(limit: Int, policy: EventOverflowPolicy) {
        precondition(limit > 0, "an event buffer must hold at least one event, not \(limit)")
        self.limit = limit
        self.policy = policy
    }

    @inlinable
    mutating func offer(_ event: Event) -> Outcome {
        guard ending == nil else { return .ignored }
        if count < limit {
            append(event)
            return .appended
        }
        droppedCount += 1
        switch policy {
        case .dropNewest:
            return .dropped(event)
        case .dropOldest:
            let oldest = popFirst()
            append(event)
            return oldest.map(Outcome.dropped) ?? .appended
        case .fail:
            ending = .overflown
            return .failed
        }
    }

    /// Returns the next step, or nil if the buffer is empty and more events may come.
    @inlinable
    mutating func step() -> Step? {
        if let event = popFirst() { return .event(event) }
        switch ending {
        case nil: return nil
        case .finished: return .end
        case .overflown:
            // An error is thrown once; after it the stream is at its end.
            ending = .finished
            return .overflow(EventOverflow(bufferLimit: limit))
        }
    }

    @inlinable
    mutating func finish() {
        if ending == nil { ending = .finished }
    }

    @inlinable
    mutating func append(_ event: Event) {
        if count == ring.count { grow() }
        ring[(head + count) % ring.count] = event
        count += 1
    }

    @inlinable
    mutating func popFirst() -> Event? {
        guard count > 0 else { return nil }
        let event = ring[head].take()
        head = (head + 1) % ring.count
        count -= 1
        return event
    }

    @inlinable
    mutating func grow() {
        let size = Swift.min(limit, Swift.max(4, ring.count * 2))
        let ordered = ring[head...] + ring[..<head]
        ring = Array(ordered) + [Event?](repeating: nil, count: size - ring.count)
        head = 0
    }
}
