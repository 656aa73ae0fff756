/// The delay before a retry. It doubles with each consecutive failure, up to a limit.
package struct Backoff: Hashable, Sendable {
    /// The delay after the first failure. Zero disables all delays.
    package var first: Duration
    package var limit: Duration

    package init(first: Duration, limit: Duration) {
        self.first = first
        self.limit = limit
    }

    /// Returns the delay after this number of consecutive failures; zero without a failure.
    package func delay(afterFailures failures: Int) -> Duration {
        guard failures > 0, first > .zero else { return .zero }
        var delay = first
        for _ in 1..<failures {
            // Checked before the doubling, which could overflow.
            guard delay < limit / 2 else { return limit }
            delay *= 2
        }
        return min(delay, limit)
    }
}
