extension Stream {
    /// Passes at most one value in each interval: the first at once, then the newest at the end of the interval.
    ///
    ///     self                      ab─c────────d──
    ///     throttle(for: 3 ticks)    a──b──c─────d──
    ///
    /// Values that come while the streams below are busy are not lost: the newest of them is next. Senders wait only
    /// for a value that passes at once. The current value passes when the chain is built and begins no interval.
    ///
    /// - Parameter emitImmediately: false if the first value, too, waits until the end of an interval.
    nonisolated public func throttle(
        for interval: Duration, emitImmediately: Bool = true, clock: some Clock<Duration> = ContinuousClock()
    ) async -> Streams.Throttle<Value> {
        let throttle = ThrottleState<Value>(interval, emitImmediately, outletBelow(), ReschedulableTimer(clock))
        let attachments = await attach(throttle.outlet, first: { await throttle.outlet.emit($0, $1) }) {
            await throttle.receive($0, $1)
        }
        return Streams.Throttle(throttle, attachments + [Attachment { throttle.timer.cancel() }])
    }
}

extension Streams {
    /// The result of ``Stream/throttle(for:emitImmediately:clock:)``.
    public actor Throttle<Value: Sendable>: Stream {
        /// The outlet of the values that pass.
        nonisolated public var outlet: Outlet<Value> { throttling.outlet }
        fileprivate nonisolated let throttling: ThrottleState<Value>
        private nonisolated let attachments: [Attachment]

        fileprivate init(_ throttling: ThrottleState<Value>, _ attachments: [Attachment]) {
            self.throttling = throttling
            self.attachments = attachments
        }

        /// Returns when no value waits for the end of an interval or is in delivery after one.
        ///
        /// Returns at once when the task is cancelled.
        nonisolated public func waitForPendingEmit() async { await throttling.idle.wait() }
    }
}

/// The intervals and the pending value of a throttled stream.
private final class ThrottleState<Value: Sendable>: Sendable {
    /// The state under the lock.
    private struct State {
        var isInInterval = false
        var pending: Value?
    }

    let outlet: Outlet<Value>
    let timer: ReschedulableTimer
    let idle = Gate(isOpen: true)
    private let interval: Duration
    private let emitImmediately: Bool
    private let queue = SerialTaskQueue("sends into the throttle that it came from")
    private let state = OperatorState(State())

    init(_ interval: Duration, _ emitImmediately: Bool, _ outlet: Outlet<Value>, _ timer: ReschedulableTimer) {
        self.interval = interval
        self.emitImmediately = emitImmediately
        self.outlet = outlet
        self.timer = timer
    }

    func receive(_ value: Value, _ wave: Wave) async {
        let (isFirst, passes, _) = state.withLock { state -> (Bool, Bool, Value?) in
            let isFirst = !state.isInInterval
            state.isInInterval = true
            if isFirst, emitImmediately { return (true, true, nil) }
            var old: Value? = value
            swap(&old, &state.pending)
            idle.close()
            return (isFirst, false, old)
        }
        if isFirst { timer.schedule(after: interval) { await self.emitPending() } }
        if passes { await queue.emit(value, from: outlet, wave) }
    }

    private func emitPending() async {
        let pending = state.withLock { state in
            let pending = state.pending.take()
            if pending == nil { state.isInInterval = false }
            return pending
        }
        guard let pending else { return }
        // Set before the delivery, so that a slow delivery does not extend the next interval.
        timer.schedule(after: interval) { await self.emitPending() }
        let wave = Wave(from: outlet)
        await wave.run { await queue.emit(pending, from: outlet, wave) }
        await wave.settle()
        state.withLock { state in
            // Under the lock, so that it cannot undo the `close` of a value that has just come.
            if state.pending == nil { idle.open() }
        }
    }
}
