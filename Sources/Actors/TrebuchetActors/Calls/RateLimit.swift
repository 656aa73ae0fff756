/// A rate limit for calls: a sustained rate and a burst size.
///
/// Each call takes a token from a bucket that has `burst` tokens at most and refills with `callsPerSecond`.
public struct RateLimit: Sendable, Hashable {
    /// The sustained rate in calls per second. Fractions are allowed: 0.1 is one call in ten seconds.
    public var callsPerSecond: Double
    /// The number of calls that may arrive at once after a pause.
    public var burst: Int

    /// Creates a rate limit. Both values must be greater than 0, else it traps.
    public init(callsPerSecond: Double, burst: Int) {
        precondition(callsPerSecond > 0 && burst > 0, "a rate limit must allow at least one call")
        self.callsPerSecond = callsPerSecond
        self.burst = burst
    }
}
