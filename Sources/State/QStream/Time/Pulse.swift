extension Stream {
    /// Passes each value for the given length, then nil. The initial value is nil.
    ///
    ///     self                        ─a────────b──c───────
    ///     pulse(ofLength: 4 ticks)    na───n────b──c───n───
    ///
    /// A new value starts its own length. The current value at the building of the chain is not a pulse.
    nonisolated public func pulse(
        ofLength length: Duration, clock: some Clock<Duration> = ContinuousClock()
    ) async -> Streams.Derived<Value?> {
        let outlet = Outlet<Value?>(.some(nil), height: self.outlet.height)
        let timer = ReschedulableTimer(clock)
        let queue = SerialTaskQueue("sends into the pulse that it came from")
        let number = OperatorState(0)
        return await derive(into: outlet, withCurrent: false, additional: [Attachment { timer.cancel() }]) {
            value, wave in
            let ownNumber = number.withLock { number in
                number += 1
                return number
            }
            await queue.emit(value, from: outlet, wave)
            // If a nested send has begun a new pulse meanwhile, the end of that one counts.
            guard number.value == ownNumber else { return }
            timer.cancel()
            timer.schedule(after: length) {
                let wave = Wave(from: outlet)
                await wave.run { await queue.emit(nil, from: outlet, wave) { number.value == ownNumber } }
                await wave.settle()
            }
        }
    }

    /// Passes each value of a stream of optionals for the given length, then nil, without nested optionals. A nil ends
    /// the pulse.
    ///
    ///     self                                ─a────────b──n───────
    ///     pulseOptional(ofLength: 4 ticks)    na───n────b──n───n───   (a nil more when the length is over)
    nonisolated public func pulseOptional<Wrapped: Sendable>(
        ofLength length: Duration, clock: some Clock<Duration> = ContinuousClock()
    ) async -> Streams.Derived<Wrapped?> where Value == Wrapped? {
        await pulse(ofLength: length, clock: clock).map { $0 ?? nil }
    }
}
