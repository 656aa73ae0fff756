extension DependencyValues {
    /// The clock that effects sleep by, which goes on while the machine sleeps: `try await clock.sleep(for: .seconds(1))`.
    ///
    /// In a test it has to be given: a ``TestClock`` or an ``ImmediateClock``.
    public var continuousClock: any Clock<Duration> {
        get { self[ContinuousClockKey.self] }
        set { self[ContinuousClockKey.self] = newValue }
    }

    /// The clock that stops while the machine sleeps. In a test it has to be given, as ``continuousClock``.
    public var suspendingClock: any Clock<Duration> {
        get { self[SuspendingClockKey.self] }
        set { self[SuspendingClockKey.self] = newValue }
    }

    /// In the place of Combine's scheduler of the main queue: a clock, for `debounce(id:for:scheduler:)` and for sleeping. In a
    /// test it has to be given, as ``continuousClock``.
    public var mainQueue: any Clock<Duration> {
        get { self[MainQueueKey.self] }
        set { self[MainQueueKey.self] = newValue }
    }

    fileprivate static func unimplementedClock(_ name: String) -> any Clock<Duration> {
        UnimplementedClock(name: name) { DependencyValues.reportUnimplemented($0) }
    }
}

private enum ContinuousClockKey: DependencyKey {
    static var liveValue: any Clock<Duration> { ContinuousClock() }
    static var testValue: any Clock<Duration> { DependencyValues.unimplementedClock("continuousClock") }
}

private enum SuspendingClockKey: DependencyKey {
    static var liveValue: any Clock<Duration> { SuspendingClock() }
    static var testValue: any Clock<Duration> { DependencyValues.unimplementedClock("suspendingClock") }
}

private enum MainQueueKey: DependencyKey {
    static var liveValue: any Clock<Duration> { ContinuousClock() }
    static var testValue: any Clock<Duration> { DependencyValues.unimplementedClock("mainQueue") }
}
