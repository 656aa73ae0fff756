extension Stream {
    /// Returns the last value, once no other has come for the interval.
    ///
    ///     self                      ab────c────────
    ///     debounce(for: 3 ticks)    ────b────c─────
    ///
    /// Values that come while the streams below are busy with an earlier one are debounced likewise: the last one
    /// always arrives. Senders do not wait. The current value passes at once when the chain is built.
    nonisolated public func debounce(
        for interval: Duration, clock: some Clock<Duration> = ContinuousClock()
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        let timer = ReschedulableTimer(clock)
        let last = OperatorState<Value?>(nil)
        return await derive(
            into: outlet, first: { await outlet.emit($0, $1) }, additional: [Attachment { timer.cancel() }]
        ) { value, _ in
            last.exchange(value)
            timer.schedule(after: interval) {
                if let value = last.exchange(nil) { await outlet.emitAlone(value) }
            }
        }
    }
}
