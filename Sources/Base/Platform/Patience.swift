/// The limit of a wait that checks a condition again and again.
///
/// Between two checks at most a fiftieth of the limit counts. With a deadline, the wait of a process that does not get the
/// processor would end before the awaited work could run.
package struct Patience: Sendable {
    /// The longest time that counts between two checks. Also a suitable time to wait until the next check.
    package let step: Duration
    private var rest: Duration
    private var lastCheck: ContinuousClock.Instant

    /// Creates a limit that begins to count at `start`.
    package init(_ limit: Duration, from start: ContinuousClock.Instant = .now) {
        step = limit / 50
        rest = limit
        lastCheck = start
    }

    /// Counts the time since the last check. Returns true once the limit is reached.
    package mutating func isExhausted(at now: ContinuousClock.Instant = .now) -> Bool {
        rest -= min(now - lastCheck, step)
        lastCheck = now
        return rest <= .zero
    }

    /// Suspends until the limit is reached. Throws `CancellationError` if the task is cancelled.
    package mutating func wait() async throws {
        while !isExhausted() { try await Task.sleep(for: step) }
    }
}
