/// How long to wait before another attempt: twice as long after each failure in a row, up to a limit.
package struct Backoff: Hashable, Sendable {
    /// After the first failure; when it is nothing, so are all others.
    package var first: Duration
    package var limit: Duration

    package init(first: Duration, limit: Duration) {
        self.first = first
        self.limit = limit
    }

    /// The wait after so many failures in a row; nothing when there was none.
    package func delay(afterFailures failures: Int) -> Duration {
        guard failures > 0, first > .zero else { return .zero }
        var delay = first
        for _ in 1..<failures {
            // Before it can run over.
            guard delay < limit / 2 else { return limit }
            delay *= 2
        }
        return min(delay, limit)
    }
}
