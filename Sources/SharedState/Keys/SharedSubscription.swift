internal import Synchronization

/// A key's subscription; cancelled once, at the latest when it is released.
public final class SharedSubscription: Sendable {
    private let onCancel: Mutex<(@Sendable () -> Void)?>

    /// - Parameter onCancel: Called on the thread that lets go of the last wrapper.
    public init(_ onCancel: @escaping @Sendable () -> Void) { self.onCancel = Mutex(onCancel) }

    /// A subscription to nothing, for keys whose value only changes through their wrappers.
    public init() { onCancel = Mutex(nil) }

    deinit { cancel() }

    /// Ends the subscription; the second time does nothing. It may be called from any thread.
    public func cancel() {
        let onCancel = onCancel.withLock { $0.take() }
        onCancel?()
    }
}
