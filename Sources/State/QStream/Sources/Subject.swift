/// A variable whose value can be observed: the head of most chains.
///
///     let count = Subject(value: 0)
///     await count.set(42)
///     await count.value          // 42
///     await count.mutate { $0 += 1 }
///
/// `set` returns when all dependents have processed the value. A subscriber that sets its own subject would wait for
/// itself: debug builds trap, release builds queue the value. Put ``Stream/dispatch(priority:bufferingPolicy:)`` in
/// between.
public actor Subject<Value: Sendable>: Stream {
    /// The outlet of the current value and each new one.
    nonisolated public let outlet: Outlet<Value>
    @usableFromInline nonisolated let source: Source<Value>
    private nonisolated let initial: Value
    private nonisolated let onDeinit: (@Sendable () -> Void)?

    /// Creates a subject with a value.
    ///
    /// - Parameter onDeinit: called when the subject is freed.
    public init(value: Value, onDeinit: (@Sendable () -> Void)? = nil) {
        outlet = Outlet(value)
        source = Source(outlet, "sets the Subject that it came from")
        initial = value
        self.onDeinit = onDeinit
    }

    /// Creates a subject whose first value is nil.
    public init<Wrapped>() where Value == Wrapped? { self.init(value: nil) }

    deinit { onDeinit?() }

    /// The last value whose delivery has begun.
    nonisolated public var value: Value {
        get async { outlet.current ?? initial }
    }

    /// Replaces the value. Returns when every subscriber has processed it.
    ///
    /// Values of several tasks are delivered one at a time, in the order of the calls.
    @inlinable
    nonisolated public final func set(_ value: Value) async { await source.send(value) }

    /// Replaces the value, like ``set(_:)``.
    @inlinable
    nonisolated public final func send(_ value: Value) async { await source.send(value) }

    /// Changes the value in place. Returns the result of `change` once every subscriber has processed the new value.
    ///
    /// Other tasks cannot set the subject meanwhile. When `change` throws, the value stays unchanged.
    @discardableResult
    nonisolated public func mutate<Result, Failure: Error>(
        _ change: (inout Value) async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await source.mutate(change, orInitial: initial)
    }
}
