public import Trebuchet

/// What the accounts of a server allow, with defaults.
///
/// Of nodes that have their accounts together (`Accounts.init(engine:…)`) all have the same limits. What counts for an account, an
/// address, a code or a host counts over all nodes, and so do accounts and guests; `pendingCodes`, `mailsInFlight`,
/// `mailsInFlightPerHost`, `codesPerConnection` and `waiting` count at each.
public struct AuthLimits: Sendable {
    /// How long a magic code is good for. Default 10 minutes.
    public var codeLifetime = Duration.seconds(10 * 60)
    /// Wrong codes that may be tried before a code is void. Default 5.
    public var codeTries = 5
    /// Codes that may be under way at once. Default 10,000; for one more, the oldest of the host that has most gives way.
    public var pendingCodes = 10_000
    /// Mails that are handed over at once. Default 64; more fail with `limitReached`.
    public var mailsInFlight = 64
    /// Of these, those that one host has asked for. Default 8; more fail with `limitReached`. This machine's own, and those
    /// of clients in this process, are not counted.
    public var mailsInFlightPerHost = 8
    /// Codes for one address that one host asks for. Default 5 at once, then one in 60 minutes; who uses one has all five again.
    public var codesPerAddress = RateLimit(callsPerSecond: 1.0 / 3_600, burst: 5)
    /// Codes for one address, whoever asks. Default 50 at once, then one in 10 minutes: so one host cannot use them up, and
    /// many cannot guess at an address's codes for long.
    public var codesPerAddressOfAll = RateLimit(callsPerSecond: 1.0 / 600, burst: 50)
    /// Codes asked for over one connection. Default 5 at once, then one in 12 seconds.
    public var codesPerConnection = RateLimit(callsPerSecond: 1.0 / 12, burst: 5)
    /// Codes asked for, codes and ID tokens tried, and guests made, each from one host. Default 50 at once, then one a second.
    public var attemptsPerHost = RateLimit(callsPerSecond: 1, burst: 50)
    /// Sessions that are renewed, listed, named and ended from one host. Default 1,000 at once, then 20 a second.
    public var renewalsPerHost = RateLimit(callsPerSecond: 20, burst: 1_000)
    /// Addresses, connections and hosts, each, whose rates are kept. Default 10,000; for one more, those that have used
    /// nothing of late give way, then the oldest of the host that has most; over nodes, those that have back soonest what they used.
    public var ratesKept = 10_000

    /// Accounts in all. Default 1,000,000; more fail with `limitReached`.
    public var accounts = 1_000_000
    /// Of these, guests, whom anybody makes; more fail with `limitReached`. Default 900,000: so there is room for those who have
    /// an address.
    public var guests = 900_000
    /// Sessions of one account; the oldest gives way. Default 20.
    public var sessionsPerAccount = 20
    /// How long a session lasts that is not renewed. Default 60 days.
    public var sessionLifetime = Duration.seconds(60 * 24 * 60 * 60)
    /// For how long a refresh token may be used once more after it was used, while its successor has not been. It is for a
    /// client that has lost the answer. Default 30 seconds.
    public var repeatWindow = Duration.seconds(30)
    /// How long after signing in somebody may give the account another address, or delete it without a code. Default 10 minutes.
    public var freshSignIn = Duration.seconds(10 * 60)
    /// How long an access token is good for. Default 15 minutes.
    public var accessLifetime = Duration.seconds(15 * 60)
    /// Calls that may wait for their turn at the store. Default 10,000; more fail with `limitReached`. Of several nodes, questions that each
    /// has asked its engine and not been answered, up to 1,000.
    public var waiting = 10_000

    /// All limits at their defaults.
    public init() {}
}
