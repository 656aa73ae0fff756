/// The time since some moment, by any clock: instants of clocks whose type is not known cannot be compared.
struct ElapsedTime {
    private let elapsed: () -> Duration

    init(by clock: any Clock<Duration>) { elapsed = Self.reading(clock) }

    var now: Duration { elapsed() }

    private static func reading<Source: Clock>(_ clock: Source) -> () -> Duration where Source.Duration == Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}
