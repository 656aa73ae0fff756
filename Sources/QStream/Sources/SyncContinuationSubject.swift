/// A subject that code which cannot wait sets: a callback, a delegate, a C function.
///
/// Values are delivered in the order in which they were pushed, one after another, by a task that lives while there are
/// any. None is dropped.
public actor SyncContinuationSubject<Value: Sendable>: Stream {
    /// Where values are pushed, from anywhere and without waiting.
    public struct Continuation: Sendable {
        let pump: Pump<Value>

        /// Queues the value for delivery and returns.
        public func yield(_ value: Value) { pump.offer(value) }
    }

    nonisolated public let outlet: Outlet<Value>
    nonisolated public let continuation: Continuation

    public init(value: Value) {
        outlet = Outlet(value)
        continuation = Continuation(pump: Pump(outlet, .unbounded))
    }

    /// A subject that begins without a value.
    public init() {
        outlet = Outlet()
        continuation = Continuation(pump: Pump(outlet, .unbounded))
    }
}
