extension Stream {
    /// The last value, once none has come for the interval.
    ///
    ///     self                      ab────c────────
    ///     debounce(for: 3 ticks)    ────b────c─────
    ///
    /// Values that come while those below are busy with an earlier one are waited for likewise: the last one always
    /// arrives. Whoever sends does not wait. The current value passes at once when the chain is built.
    nonisolated public func debounce(
        for interval: Duration, clock: some Clock<Duration> = ContinuousClock()
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        let alarm = Alarm(clock)
        let last = Kept<Value?>(nil)
        return await derive(
            into: outlet, first: { await outlet.emit($0, $1) }, also: [Attachment { alarm.cancel() }]
        ) { value, _ in
            last.exchange(value)
            alarm.set(after: interval) {
                if let value = last.exchange(nil) { await outlet.emitAlone(value) }
            }
        }
    }
}
