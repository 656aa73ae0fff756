extension Streams {
    /// An impulse after each interval.
    ///
    ///     Timer(interval: 3 ticks)   ───•──•──•──
    ///
    /// An interval that those below took longer than is skipped: impulses do not come in bursts. The timer runs while it,
    /// or a chain that hangs on it, is held.
    public actor Timer: Stream {
        /// Impulses carry nothing.
        public typealias Value = Void
        /// Where impulses come out; it has no current value.
        nonisolated public let outlet: Outlet<Void>
        private nonisolated let task: Task<Void, Never>

        /// - Parameters:
        ///   - preventDrift: whether the impulses keep to multiples of the interval; else each interval begins when
        ///     those below have dealt with the impulse before.
        ///   - isRepeating: false for a single impulse.
        public nonisolated init(
            interval: Duration, preventDrift: Bool = true, repeat isRepeating: Bool = true,
            clock: some Clock<Duration> = ContinuousClock()
        ) async {
            precondition(interval > .zero, "a timer's interval must be longer than nothing, not \(interval)")
            let outlet = Outlet<Void>(keepsValue: false)
            let clock = StreamClock(clock)
            self.outlet = outlet
            task = Worker.current.start {
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

        /// The first of `due + interval`, `due + 2 * interval` … that is still to come.
        static func next(after now: Duration, from due: Duration, every interval: Duration) -> Duration {
            guard due + interval <= now else { return due + interval }
            return due + interval * (Int((now - due) / interval) + 1)
        }
    }
}
