/// A variable whose value can be followed: the head of most chains.
///
///     let count = Subject(value: 0)
///     await count.set(42)
///     await count.value          // 42
///     await count.mutate { $0 += 1 }
///
/// `set` returns when all that depends on the value has been dealt with. A subscriber that sets the subject it hangs on
/// would wait for itself: debug builds trap, release builds queue the value; put ``Stream/dispatch(priority:bufferingPolicy:)``
/// in between.
public actor Subject<Value: Sendable>: Stream {
    /// Where the value is, and each new one comes out.
    nonisolated public let outlet: Outlet<Value>
    @usableFromInline nonisolated let source: Source<Value>
    private nonisolated let initial: Value
    private nonisolated let onDeinit: (@Sendable () -> Void)?

    /// - Parameter onDeinit: called when the subject is freed.
    public init(value: Value, onDeinit: (@Sendable () -> Void)? = nil) {
        outlet = Outlet(value)
        source = Source(outlet, "sets the Subject that it came from")
        initial = value
        self.onDeinit = onDeinit
    }

    /// A subject that begins with nil.
    public init<Wrapped>() where Value == Wrapped? { self.init(value: nil) }

    deinit { onDeinit?() }

    /// The value that was delivered, or began to be, last.
    nonisolated public var value: Value {
        get async { outlet.current ?? initial }
    }

    /// Replaces the value and returns when every subscriber has dealt with it.
    ///
    /// Values of several tasks are delivered one after another, in the order in which the tasks called.
    @inlinable
    nonisolated public final func set(_ value: Value) async { await source.send(value) }

    /// The same as ``set(_:)``.
    @inlinable
    nonisolated public final func send(_ value: Value) async { await source.send(value) }

    /// Changes the value in place, and returns what `change` returns once every subscriber has dealt with the new value.
    ///
    /// Nobody else sets the subject meanwhile. When `change` throws, the value stays as it was.
    @discardableResult
    nonisolated public func mutate<Result, Failure: Error>(
        _ change: (inout Value) async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await source.mutate(change, orInitial: initial)
    }
}
