public import Trebuchet

/// What the accounts of a server allow, with defaults.
public struct AuthLimits: Sendable {
    /// How long a magic code is good for. Default 10 minutes.
    public var codeLifetime = Duration.seconds(10 * 60)
    /// Wrong codes that may be tried before a code is void. Default 5.
    public var codeTries = 5
    /// Codes that may be under way at once. Default 10,000; more fail with `limitReached`.
    public var pendingCodes = 10_000
    /// Mails that are handed over at once. Default 64; more fail with `limitReached`.
    public var mailsInFlight = 64
    /// Codes for one address. Default 5 at once, then one in 5 minutes.
    public var codesPerAddress = RateLimit(callsPerSecond: 1.0 / 300, burst: 5)
    /// Codes asked for over one connection. Default 5 at once, then one in 12 seconds.
    public var codesPerConnection = RateLimit(callsPerSecond: 1.0 / 12, burst: 5)
    /// Codes asked for, codes tried and guests made, each from one host. Default 50 at once, then one a second.
    public var attemptsPerHost = RateLimit(callsPerSecond: 1, burst: 50)
    /// Addresses, connections and hosts, each, whose rates are kept. Default 10,000; while as many have used theirs, others
    /// are refused.
    public var ratesKept = 10_000

    /// Accounts in all. Default 1,000,000; more fail with `limitReached`.
    public var accounts = 1_000_000
    /// Sessions of one account; the oldest gives way. Default 20.
    public var sessionsPerAccount = 20
    /// How long a session lasts that is not renewed. Default 60 days.
    public var sessionLifetime = Duration.seconds(60 * 24 * 60 * 60)
    /// For how long a refresh token may be used once more after it was used, while its successor has not been. It is for a
    /// client that has lost the answer. Default 30 seconds.
    public var repeatWindow = Duration.seconds(30)
    /// How long an access token is good for. Default 15 minutes.
    public var accessLifetime = Duration.seconds(15 * 60)
    /// Calls that may wait for their turn at the store. Default 10,000; more fail with `limitReached`.
    public var waiting = 10_000

    public init() {}
}
