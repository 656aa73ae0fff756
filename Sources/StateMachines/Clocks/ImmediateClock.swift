import Synchronization

/// A clock on which nobody waits: who sleeps is awake at once, and the time has gone on by as much.
///
/// For tests and previews in which it does not matter when something happens.
public final class ImmediateClock: Clock, Sendable {
    /// A moment, as on a ``TestClock``.
    public typealias Instant = TestClock.Instant

    private let moment = Mutex(Instant())

    /// Begins at zero.
    public init() {}

    /// The latest moment that somebody has slept until.
    public var now: Instant { moment.withLock { $0 } }

    /// Zero.
    public var minimumResolution: Swift.Duration { .zero }

    /// Returns at once, after others had their turn. Throws `CancellationError` when the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Swift.Duration? = nil) async throws {
        try Task.checkCancellation()
        moment.withLock { $0 = max($0, deadline) }
        await Task.yield()
    }
}

extension Clock where Self == ImmediateClock {
    /// A clock on which nobody waits.
    public static var immediate: Self { ImmediateClock() }
}

/// The clock of a test that gives none: to use it fails the test. It then goes on as the clock that runs always does.
struct UnimplementedClock: Clock {
    typealias Instant = ContinuousClock.Instant

    let name: String
    let report: @Sendable (String) -> Void

    var now: Instant {
        // Whoever sleeps asks for it first.
        report("Unimplemented: \(name). Give it a value with 'withDependencies', such as a 'TestClock'.")
        return ContinuousClock.now
    }

    var minimumResolution: Duration { ContinuousClock().minimumResolution }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await ContinuousClock().sleep(until: deadline, tolerance: tolerance)
    }
}
