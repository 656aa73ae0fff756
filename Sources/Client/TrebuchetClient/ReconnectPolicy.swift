internal import Platform

/// The delays and limits of a client's attempts to reconnect.
///
/// The delay before an attempt is random between zero and a limit that doubles with each consecutive failure (full
/// jitter). The clients of a restarted server therefore do not all connect at once.
public struct ReconnectPolicy: Hashable, Sendable {
    /// The maximum delay after the first failure. Default 0.2 seconds.
    public var initialDelay = Duration.milliseconds(200)
    /// The maximum delay after any number of failures. Default 10 seconds.
    ///
    /// A draining server may request a longer one, of at most 60 seconds.
    public var maximumDelay = Duration.seconds(10)
    /// The duration after which a connection resets the counts of attempts and failures. Default 10 seconds.
    public var resetAfter = Duration.seconds(10)
    /// The maximum number of consecutive attempts, including that of `connect()`. Default nil: no maximum.
    public var maximumAttempts: Int?
    /// Whether `connect()` continues after a failed first attempt. Default false: it throws, and the client stays disconnected
    /// until it is called again.
    public var retriesFirstConnection = false

    /// Creates the default policy.
    public init() {}

    /// A policy without reconnecting.
    public static var never: ReconnectPolicy {
        var policy = ReconnectPolicy()
        policy.maximumAttempts = 0
        return policy
    }

    /// Returns the delay after this number of consecutive failures.
    ///
    /// - Parameter random: the fraction of the limit, in `0..<1`.
    func delay(afterFailures failures: Int, random: Double) -> Duration {
        let limit = Backoff(first: initialDelay, limit: maximumDelay).delay(afterFailures: failures)
        return max(limit * random, .zero)
    }
}
