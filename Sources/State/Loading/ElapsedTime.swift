/// Measures the time since its creation by any clock: instants of type-erased clocks cannot be compared.
struct ElapsedTime {
    private let elapsed: () -> Duration

    init(by clock: any Clock<Duration>) { elapsed = Self.reading(clock) }

    var now: Duration { elapsed() }

    private static func reading<Source: Clock>(_ clock: Source) -> () -> Duration where Source.Duration == Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}
