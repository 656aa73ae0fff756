internal import Platform

/// How long to wait before each further attempt: twice as long every time, up to a limit.
public struct RetryBackoff: Sendable, Hashable {
    /// The wait before the second attempt.
    public var first: Duration
    /// The longest wait.
    public var limit: Duration

    /// - Parameters:
    ///   - first: Before the second attempt. Default 1 second.
    ///   - limit: The longest wait. Default 60 seconds.
    public init(first: Duration = .seconds(1), limit: Duration = .seconds(60)) {
        precondition(first >= .zero && limit >= .zero, "a wait cannot be negative: \(first), \(limit)")
        self.first = first
        self.limit = limit
    }

    /// - Parameters:
    ///   - first: How many seconds to wait before the second attempt.
    ///   - limit: The longest wait in seconds. Default 60.
    public init(first: Double, limit: Double = 60) { self.init(first: .seconds(first), limit: .seconds(limit)) }

    /// The wait before an attempt; the first attempt has the number 1 and no wait.
    public func delay(beforeAttempt attempt: Int) -> Duration {
        Backoff(first: first, limit: limit).delay(afterFailures: attempt - 1)
    }
}
