internal import Synchronization

/// A subscription: it lasts until this object is released or cancelled, and keeps its chain of streams alive.
///
/// A value whose delivery is under way when it ends is not delivered to it any more, unless its closure already runs.
public final class AnySubscription: Sendable {
    private let attachment: Mutex<Attachment?>

    init(_ attachment: Attachment) { self.attachment = Mutex(attachment) }

    /// A subscription to something that is not a stream; `cancel` is called once, when it ends.
    public convenience init(cancel: @escaping @Sendable () -> Void) { self.init(Attachment(cancel)) }

    /// Ends the subscription now. A second time it does nothing.
    public func cancel() {
        _ = attachment.withLock { $0.take() }
    }

    /// Adds the subscription to a list that keeps it.
    public func store(in subscriptions: inout [AnySubscription]) { subscriptions.append(self) }

    /// Adds the subscription to a set that keeps it.
    public func store(in subscriptions: inout Set<AnySubscription>) { subscriptions.insert(self) }
}

extension AnySubscription: Hashable {
    public static func == (a: AnySubscription, b: AnySubscription) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
