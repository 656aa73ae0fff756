import Synchronization

/// A clock whose sleeps return at once and advance the time by the duration of the sleep.
///
/// For tests and previews in which timing does not matter.
public final class ImmediateClock: Clock, Sendable {
    /// An instant, as on a ``TestClock``.
    public typealias Instant = TestClock.Instant

    private let instant = Mutex(Instant())

    /// Creates a clock at zero.
    public init() {}

    /// The latest deadline of a sleep.
    public var now: Instant { instant.withLock { $0 } }

    /// Zero.
    public var minimumResolution: Swift.Duration { .zero }

    /// Returns at once, after a yield to other tasks. Throws `CancellationError` when the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Swift.Duration? = nil) async throws {
        try Task.checkCancellation()
        instant.withLock { $0 = max($0, deadline) }
        await Task.yield()
    }
}

extension Clock where Self == ImmediateClock {
    /// A clock without delays.
    public static var immediate: Self { ImmediateClock() }
}

/// The clock of a test that does not provide one. Its use fails the test; it then behaves like the continuous clock.
struct UnimplementedClock: Clock {
    typealias Instant = ContinuousClock.Instant

    let name: String
    let report: @Sendable (String) -> Void

    var now: Instant {
        // Every sleep reads it first.
        report("Unimplemented: \(name). Give it a value with 'withDependencies', such as a 'TestClock'.")
        return ContinuousClock.now
    }

    var minimumResolution: Duration { ContinuousClock().minimumResolution }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
    }
}
