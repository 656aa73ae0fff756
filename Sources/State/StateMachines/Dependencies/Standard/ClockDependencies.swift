extension DependencyValues {
    /// The clock of effects, which advances while the machine sleeps: `try await clock.sleep(for: .seconds(1))`.
    ///
    /// A test must provide it: a ``TestClock`` or an ``ImmediateClock``.
    public var continuousClock: any Clock<Duration> {
        get { self[ContinuousClockKey.self] }
        set { self[ContinuousClockKey.self] = newValue }
    }

    /// The clock that stops while the machine sleeps. A test must provide it, like ``continuousClock``.
    public var suspendingClock: any Clock<Duration> {
        get { self[SuspendingClockKey.self] }
        set { self[SuspendingClockKey.self] = newValue }
    }

    /// A clock that replaces Combine's main queue scheduler, for `debounce(id:for:scheduler:)` and for sleeping. A
    /// test must provide it, like ``continuousClock``.
    public var mainQueue: any Clock<Duration> {
        get { self[MainQueueKey.self] }
        set { self[MainQueueKey.self] = newValue }
    }

    fileprivate static func unimplementedClock(_ name: String) -> any Clock<Duration> {
        UnimplementedClock(name: name) { DependencyValues.reportUnimplemented($0) }
    }
}

/// The key of ``DependencyValues/continuousClock``.
private enum ContinuousClockKey: DependencyKey {
    static var liveValue: any Clock<Duration> { ContinuousClock() }
    static var testValue: any Clock<Duration> { DependencyValues.unimplementedClock("continuousClock") }
}

/// The key of ``DependencyValues/suspendingClock``.
private enum SuspendingClockKey: DependencyKey {
    static var liveValue: any Clock<Duration> { SuspendingClock() }
    static var testValue: any Clock<Duration> { DependencyValues.unimplementedClock("suspendingClock") }
}

/// The key of ``DependencyValues/mainQueue``.
private enum MainQueueKey: DependencyKey {
    static var liveValue: any Clock<Duration> { ContinuousClock() }
    static var testValue: any Clock<Duration> { DependencyValues.unimplementedClock("mainQueue") }
}
