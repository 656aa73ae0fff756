/// A stream of impulses. It has no current value, and each value reaches the subscribers of that moment.
///
///     let buttonTapped = Relay<Void>()
///     await buttonTapped.send(())
public actor Relay<Value: Sendable>: Stream {
    /// The outlet of the impulses. It has no current value.
    nonisolated public let outlet: Outlet<Value>
    @usableFromInline nonisolated let source: Source<Value>

    /// Creates a relay without subscribers. Values sent before the first subscription are lost.
    public init() {
        outlet = Outlet(keepsValue: false)
        source = Source(outlet, "sends to the Relay that it came from")
    }

    /// Sends a value. Returns when every subscriber has processed it. Values are delivered in the order of the calls.
    @inlinable
    nonisolated public final func send(_ value: Value) async { await source.send(value) }
}

extension Relay where Value == Void {
    /// Sends an impulse.
    nonisolated public final func send() async { await send(()) }
}
