/// What happens to a subscriber whose buffer is full when an event arrives.
public enum EventOverflowPolicy: Sendable, Hashable {
    /// The oldest buffered event makes room for the new one.
    case dropOldest
    /// The new event is not kept for this subscriber.
    case dropNewest
    /// The subscription ends: its reader gets what is buffered, then an ``EventOverflow`` is thrown.
    case fail
}

/// A subscriber with the policy ``EventOverflowPolicy/fail`` fell further behind than its buffer allows.
public struct EventOverflow: Error, Hashable, CustomStringConvertible {
    /// The number of events that the subscriber's buffer holds.
    public let bufferLimit: Int

    @usableFromInline
    init(bufferLimit: Int) { self.bufferLimit = bufferLimit }

    public var description: String {
        "the subscriber fell more than \(bufferLimit) events behind; read faster, subscribe with a larger buffer, "
            + "or choose to drop events"
    }
}
