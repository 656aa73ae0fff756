extension Stream where Value == Bool {
    /// Passes true at once, and false only after an interval without true.
    ///
    ///     self                  T─F──T──F──────────
    ///     hold(for: 4 ticks)    T────T──────F──────
    ///
    /// The interval begins with the first false. When the last value was not true, a false passes at once.
    nonisolated public func hold(
        for interval: Duration, clock: some Clock<Duration> = ContinuousClock()
    ) async -> Streams.Derived<Bool> {
        let outlet: Outlet<Bool> = outletBelow()
        let timer = ReschedulableTimer(clock)
        let queue = SerialTaskQueue("sends into the hold that it came from")
        /// The number of the waiting false; `isWaiting` is false if there is none.
        let waiting = OperatorState<(number: Int, isWaiting: Bool)>((0, false))
        return await derive(
            into: outlet, first: { await outlet.emit($0, $1) }, additional: [Attachment { timer.cancel() }]
        ) { value, wave in
            if value || outlet.current != true {
                waiting.withLock { $0.isWaiting = false }
                timer.cancel()
                await queue.emit(value, from: outlet, wave)
                return
            }
            let number = waiting.withLock { waiting -> Int? in
                guard !waiting.isWaiting else { return nil }
                waiting = (waiting.number + 1, true)
                return waiting.number
            }
            guard let number else { return }
            timer.schedule(after: interval) {
                let wave = Wave(from: outlet)
                await wave.run {
                    // Checked in its turn: a true may have come in front of it.
                    await queue.emit(false, from: outlet, wave) {
                        waiting.withLock { waiting in
                            guard waiting == (number, true) else { return false }
                            waiting.isWaiting = false
                            return true
                        }
                    }
                }
                await wave.settle()
            }
        }
    }
}
