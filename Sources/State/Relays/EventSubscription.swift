/// The events of one subscriber, in order. The subscription ends when this object is released.
///
/// All iterators of one subscription share its buffer: each event goes to one of them. For two readers of all events,
/// subscribe twice.
public final class EventSubscription<Event: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Event
    public typealias Failure = EventOverflow
    @usableFromInline typealias Queue = Monitor<EventQueue<Event>>

    @usableFromInline let queue: Queue
    @usableFromInline let id: UInt64
    @usableFromInline let subscribers: EventSubscribers<Event>

    @inlinable
    init(queue: Queue, id: UInt64, subscribers: EventSubscribers<Event>) {
        self.queue = queue
        self.id = id
        self.subscribers = subscribers
    }

    deinit { subscribers.remove(id) }

    /// The number of events that this subscriber lost because its buffer was full.
    @inlinable
    public var droppedCount: UInt64 { queue.withLock { $0.droppedCount } }

    /// The number of unread events.
    @inlinable
    public var bufferedCount: Int { queue.withLock { $0.count } }

    @inlinable
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

    /// A reader of the subscription. It keeps the subscription alive.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline let subscription: EventSubscription

        @inlinable
        init(subscription: EventSubscription) { self.subscription = subscription }

        /// Returns the oldest unread event, or the next one; nil at the end or when the task is cancelled.
        ///
        /// Throws ``EventOverflow`` once, after the buffered events, when the policy is ``EventOverflowPolicy/fail``
        /// and the buffer overflowed.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(EventOverflow) -> Event? {
            switch await subscription.queue.wait(isolation: actor, for: { $0.step() }) {
            case .event(let event): return event
            case .overflow(let overflow): throw overflow
            case .end, nil: return nil
            }
        }
    }

    /// The number of readers that wait for the next event.
    package var waitingReaderCount: Int { queue.sleeperCount }
}

@available(*, unavailable)
extension EventSubscription.Iterator: Sendable {}
