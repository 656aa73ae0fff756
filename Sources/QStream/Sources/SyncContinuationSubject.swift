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

    /// Where values come out, in the order in which they were pushed.
    nonisolated public let outlet: Outlet<Value>
    /// What to hand to the code that cannot wait. It does not keep the subject alive.
    nonisolated public let continuation: Continuation

    /// A subject that has a current value from the beginning.
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
