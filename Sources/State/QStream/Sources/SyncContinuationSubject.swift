/// A subject for synchronous senders: a callback, a delegate, a C function.
///
/// Values are delivered in the order in which they were pushed, one at a time, by a task that lives while there are
/// any. None is dropped.
public actor SyncContinuationSubject<Value: Sendable>: Stream {
    /// Accepts values from any thread without waiting.
    public struct Continuation: Sendable {
        let pump: Pump<Value>

        /// Queues the value for delivery and returns.
        public func yield(_ value: Value) { pump.enqueue(value) }
    }

    /// The outlet of the values, in the order in which they were pushed.
    nonisolated public let outlet: Outlet<Value>
    /// The continuation for synchronous code. It does not keep the subject alive.
    nonisolated public let continuation: Continuation

    /// Creates a subject with a current value.
    public init(value: Value) {
        outlet = Outlet(value)
        continuation = Continuation(pump: Pump(outlet, .unbounded))
    }

    /// Creates a subject without a value.
    public init() {
        outlet = Outlet()
        continuation = Continuation(pump: Pump(outlet, .unbounded))
    }
}
