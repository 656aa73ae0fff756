internal import Synchronization

/// A subscription that lasts until this object is released or cancelled, and keeps its chain of streams alive.
///
/// A value in delivery at the end of the subscription is not delivered to it any more, unless its closure already
/// runs.
public final class AnySubscription: Sendable {
    private let attachment: Mutex<Attachment?>

    init(_ attachment: Attachment) { self.attachment = Mutex(attachment) }

    /// Creates a subscription to a source that is not a stream. `cancel` is called once, when the subscription ends.
    public convenience init(cancel: @escaping @Sendable () -> Void) { self.init(Attachment(cancel)) }

    /// Ends the subscription now. A second call does nothing.
    public func cancel() {
        _ = attachment.withLock { $0.take() }
    }

    /// Adds the subscription to a list that retains it.
    public func store(in subscriptions: inout [AnySubscription]) { subscriptions.append(self) }

    /// Adds the subscription to a set that retains it.
    public func store(in subscriptions: inout Set<AnySubscription>) { subscriptions.insert(self) }
}

extension AnySubscription: Hashable {
    public static func == (a: AnySubscription, b: AnySubscription) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
