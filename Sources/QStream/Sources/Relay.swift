/// A stream of impulses: it has no current value, and what is sent reaches those who are subscribed at that moment.
///
///     let buttonTapped = Relay<Void>()
///     await buttonTapped.send(())
public actor Relay<Value: Sendable>: Stream {
    /// Where impulses come out; it has no current value.
    nonisolated public let outlet: Outlet<Value>
    @usableFromInline nonisolated let source: Source<Value>

    /// A relay that nobody is subscribed to yet: what is sent before is lost.
    public init() {
        outlet = Outlet(keepsValue: false)
        source = Source(outlet, "sends to the Relay that it came from")
    }

    /// Returns when every subscriber has dealt with the value. Values are delivered in the order of the calls.
    @inlinable
    nonisolated public final func send(_ value: Value) async { await source.send(value) }
}

extension Relay where Value == Void {
    /// Sends an impulse.
    nonisolated public final func send() async { await send(()) }
}
