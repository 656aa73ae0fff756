extension Streams {
    /// Emits an impulse after each interval.
    ///
    ///     Timer(interval: 3 ticks)   ───•──•──•──
    ///
    /// An interval that ends while the streams below are busy is skipped: impulses do not come in bursts. The timer
    /// runs while it, or a chain attached to it, is retained.
    public actor Timer: Stream {
        /// Impulses carry no value.
        public typealias Value = Void
        /// The outlet of the impulses. It has no current value.
        nonisolated public let outlet: Outlet<Void>
        private nonisolated let task: Task<Void, Never>

        /// Starts a timer.
        ///
        /// - Parameters:
        ///   - preventDrift: whether the impulses keep to multiples of the interval. Otherwise each interval begins
        ///     when the streams below have processed the previous impulse.
        ///   - isRepeating: false for a single impulse.
        public nonisolated init(
            interval: Duration, preventDrift: Bool = true, repeat isRepeating: Bool = true,
            clock: some Clock<Duration> = ContinuousClock()
        ) async {
            precondition(interval > .zero, "a timer's interval must be positive, not \(interval)")
            let outlet = Outlet<Void>(keepsValue: false)
            let clock = StreamClock(clock)
            self.outlet = outlet
            task = OperatorTask.current.start {
                var due = interval
                while (try? await clock.sleep(due)) != nil {
                    await outlet.emitAlone(())
                    guard isRepeating else { return }
                    let now = clock.now()
                    due = preventDrift ? Self.next(after: now, from: due, every: interval) : now + interval
                }
            }
        }

        deinit { task.cancel() }

        /// Returns the first future instant of `due + interval`, `due + 2 * interval` ….
        static func next(after now: Duration, from due: Duration, every interval: Duration) -> Duration {
            guard due + interval <= now else { return due + interval }
            return due + interval * (Int((now - due) / interval) + 1)
        }
    }
}
