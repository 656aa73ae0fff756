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
        let alarm = ReschedulableTimer(clock)
        let line = SerialTaskQueue("sends into the pulse that it came from")
        let number = OperatorState(0)
        return await derive(into: outlet, withCurrent: false, also: [Attachment { alarm.cancel() }]) { value, wave in
            let own = number.withLock { number in
                number += 1
                return number
            }
            await line.emit(value, from: outlet, wave)
            // If a nested send has begun a new pulse meanwhile, the end of that one counts.
            guard number.value == own else { return }
            alarm.cancel()
            alarm.set(after: length) {
                let wave = Wave(from: outlet)
                await wave.run { await line.emit(nil, from: outlet, wave) { number.value == own } }
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
