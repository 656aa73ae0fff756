internal import Platform

/// The delay before each further attempt: doubled every time, up to a limit.
public struct RetryBackoff: Sendable, Hashable {
    /// The delay before the second attempt.
    public var first: Duration
    /// The maximum delay.
    public var limit: Duration

    /// Creates a backoff.
    ///
    /// - Parameters:
    ///   - first: The delay before the second attempt. Default 1 second.
    ///   - limit: The maximum delay. Default 60 seconds.
    public init(first: Duration = .seconds(1), limit: Duration = .seconds(60)) {
        precondition(first >= .zero && limit >= .zero, "a delay cannot be negative: \(first), \(limit)")
        self.first = first
        self.limit = limit
    }

    /// Creates a backoff with delays in seconds.
    ///
    /// - Parameters:
    ///   - first: The delay before the second attempt, in seconds.
    ///   - limit: The maximum delay in seconds. Default 60.
    public init(first: Double, limit: Double = 60) { self.init(first: .seconds(first), limit: .seconds(limit)) }

    /// Returns the delay before an attempt. The first attempt has the number 1 and no delay.
    public func delay(beforeAttempt attempt: Int) -> Duration {
        Backoff(first: first, limit: limit).delay(afterFailures: attempt - 1)
    }
}
