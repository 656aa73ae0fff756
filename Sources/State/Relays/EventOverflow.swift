/// The treatment of an event that arrives at a subscriber whose buffer is full.
public enum EventOverflowPolicy: Sendable, Hashable {
    /// The oldest buffered event is dropped.
    case dropOldest
    /// The new event is dropped for this subscriber.
    case dropNewest
    /// The subscription ends: its reader gets the buffered events, then ``EventOverflow`` is thrown.
    case fail
}

/// The error for a subscriber with the policy ``EventOverflowPolicy/fail`` that fell further behind than its buffer
/// allows.
public struct EventOverflow: Error, Hashable, CustomStringConvertible {
    /// The capacity of the subscriber's buffer, in events.
    public let bufferLimit: Int

    @usableFromInline
    init(bufferLimit: Int) { self.bufferLimit = bufferLimit }

    public var description: String {
        "the subscriber is more than \(bufferLimit) events behind; read faster, subscribe with a larger buffer, "
            + "or use an overflow policy that drops events"
    }
}
