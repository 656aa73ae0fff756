/// Events sent to any number of subscribers, each with a bounded buffer of its own.
///
/// Every subscriber sees the events in the same order, whichever tasks send them. Sending never waits: what a full
/// buffer means is said by each subscriber's overflow policy. Usable from any isolation. When the relay is freed its
/// subscriptions end as after `finish()`.
public final class EventRelay<Event: Sendable>: Sendable {
    @usableFromInline let subscribers = EventSubscribers<Event>()

    /// A relay without subscriptions: what is sent before the first is lost.
    @inlinable
    public init() {}

    deinit { finish() }

    /// The number of subscriptions that are held by somebody and have not ended.
    @inlinable
    public var subscriberCount: Int { subscribers.count }

    /// Begins a subscription: it gets each event sent from now until it is released.
    ///
    /// - Parameters:
    ///   - bufferLimit: How many unread events are kept, at least 1.
    ///   - overflow: What happens when one more arrives.
    @inlinable
    public func subscribe(
        bufferLimit: Int = 256, onOverflow overflow: EventOverflowPolicy
    ) -> EventSubscription<Event> {
        let queue = EventSubscription<Event>.Queue(EventQueue(limit: bufferLimit, policy: overflow))
        return EventSubscription(queue: queue, id: subscribers.add(queue), subscribers: subscribers)
    }

    /// Hands an event to all subscribers. After `finish()` it does nothing.
    @inlinable
    public func send(_ event: Event) {
        subscribers.send(event)
    }

    /// Ends all subscriptions: each reader still gets what is in its buffer.
    @inlinable
    public func finish() {
        subscribers.finish()
    }
}
