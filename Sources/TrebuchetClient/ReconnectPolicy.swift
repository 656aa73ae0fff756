internal import Platform

/// When a client that has lost its server tries to reach it again.
///
/// The wait before an attempt is drawn at random between nothing and a limit that doubles with each failure in a row
/// (full jitter), so that the clients of a server that has come back do not all arrive at once.
public struct ReconnectPolicy: Hashable, Sendable {
    /// The longest wait after the first failure. Default 0.2 seconds.
    public var initialDelay = Duration.milliseconds(200)
    /// The longest wait after any number of failures. Default 10 seconds.
    ///
    /// A server that sends its clients away may name a longer one, of at most 60 seconds.
    public var maximumDelay = Duration.seconds(10)
    /// How long a connection must have lasted for attempts and failures to be counted anew. Default 10 seconds.
    public var resetAfter = Duration.seconds(10)
    /// Attempts in a row, the one of `connect()` among them, after which the client gives up. Default nil: never.
    public var maximumAttempts: Int?
    /// Whether `connect()` goes on when its first attempt fails. Default false: it throws, and the client stays
    /// disconnected until it is called again.
    public var retriesFirstConnection = false

    /// The defaults: each property tells its own.
    public init() {}

    /// A client that stays disconnected when its connection has ended.
    public static var never: ReconnectPolicy {
        var policy = ReconnectPolicy()
        policy.maximumAttempts = 0
        return policy
    }

    /// The wait after so many failures in a row.
    ///
    /// - Parameter random: in `0..<1`, what part of the limit it is.
    func delay(afterFailures failures: Int, random: Double) -> Duration {
        let limit = Backoff(first: initialDelay, limit: maximumDelay).delay(afterFailures: failures)
        return max(limit * random, .zero)
    }
}
