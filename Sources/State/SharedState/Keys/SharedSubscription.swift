internal import Synchronization

/// The subscription of a key. It is cancelled once, at the latest at its release.
public final class SharedSubscription: Sendable {
    private let onCancel: Mutex<(@Sendable () -> Void)?>

    /// Creates a subscription.
    ///
    /// - Parameter onCancel: Called on the thread that releases the last wrapper.
    public init(_ onCancel: @escaping @Sendable () -> Void) { self.onCancel = Mutex(onCancel) }

    /// Creates an empty subscription, for keys whose value changes only through their wrappers.
    public init() { onCancel = Mutex(nil) }

    deinit { cancel() }

    /// Ends the subscription. A second call does nothing. Callable from any thread.
    public func cancel() {
        let onCancel = onCancel.withLock { $0.take() }
        onCancel?()
    }
}
