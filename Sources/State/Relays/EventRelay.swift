/// Sends events to any number of subscribers, each with its own bounded buffer.
///
/// Every subscriber gets the events in the same order, whichever tasks send them. Sending never waits: each
/// subscriber's overflow policy applies when its buffer is full. Usable from any isolation. When the relay is freed,
/// its subscriptions end as after `finish()`.
public final class EventRelay<Event: Sendable>: Sendable {
    @usableFromInline let subscribers = EventSubscribers<Event>()

    /// Creates a relay without subscriptions. Events sent before the first subscription are lost.
    @inlinable
    public init() {}

    deinit { finish() }

    /// The number of subscriptions that are still referenced and have not ended.
    @inlinable
    public var subscriberCount: Int { subscribers.count }

    /// Starts a subscription that gets each event sent from now until it is released.
    ///
    /// - Parameters:
    ///   - bufferLimit: The maximum number of unread events that are kept, at least 1.
    ///   - overflow: The treatment of an event that exceeds the limit.
    @inlinable
    public func subscribe(
        bufferLimit: Int = 256, onOverflow overflow: EventOverflowPolicy
    ) -> EventSubscription<Event> {
        let queue = EventSubscription<Event>.Queue(EventQueue(limit: bufferLimit, policy: overflow))
        return EventSubscription(queue: queue, id: subscribers.addQueue(queue), subscribers: subscribers)
    }

    /// Sends an event to all subscribers. After `finish()` it does nothing.
    @inlinable
    public func send(_ event: Event) {
        subscribers.send(event)
    }

    /// Ends all subscriptions. Each reader still gets the events in its buffer.
    @inlinable
    public func finish() {
        subscribers.finish()
    }
}
