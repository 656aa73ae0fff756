public import TrebuchetActors

/// Limits for the accounts of a server, with defaults.
///
/// Limits and rates per host apply to an IPv4 address or an IPv6 /64 network; an IPv6 /48 network has four times as much.
/// Nodes that share their accounts (`Accounts.init(engine:…)`) must have the same limits. Limits for an account, an address, a
/// code or a host, and those on accounts and guests, count over all nodes. `pendingCodes`, `mailsInFlight`,
/// `mailsInFlightPerHost`, `waitingMails`, `codesPerConnection` and `queuedRequests` count at each node.
public struct AuthLimits: Sendable {
    /// The lifetime of a magic code. Default 10 minutes.
    public var codeLifetime = Duration.seconds(10 * 60)
    /// Wrong tries after which a code is void. Default 5.
    public var codeAttempts = 5
    /// Codes that may be pending at once. Default 10,000; above it, the oldest code of the host with the most codes is evicted, or,
    /// when no network has many more than others, a new code is refused with `rateLimited`.
    public var pendingCodes = 10_000
    /// Mails that are being handed over at once. Default 64; more wait for their turn, which is fair to networks, their hosts and
    /// addresses.
    public var mailsInFlight = 64
    /// Mails in flight or waiting that one host has requested. Default 8; more fail with `limitReached`. Loopback clients and
    /// clients in this process are not counted.
    public var mailsInFlightPerHost = 8
    /// Mails that wait for their turn. Default 1,000; above it, the newest of the network with the most fails with
    /// `limitReached`.
    public var waitingMails = 1_000
    /// Codes for one address that one host requests. Default 5 at once, then one in 60 minutes; using a code restores all five.
    public var codesPerAddressAndHost = RateLimit(callsPerSecond: 1.0 / 3_600, burst: 5)
    /// Codes for one address, from all hosts. Default 50 at once, then one in 10 minutes: one host cannot use them up, and many
    /// hosts cannot guess an address's codes for long.
    public var codesPerAddress = RateLimit(callsPerSecond: 1.0 / 600, burst: 50)
    /// Codes requested over one connection. Default 5 at once, then one in 12 seconds.
    public var codesPerConnection = RateLimit(callsPerSecond: 1.0 / 12, burst: 5)
    /// Requests for codes, tries of codes and ID tokens, and new guests, from one host. Default 50 at once, then one a second.
    public var attemptsPerHost = RateLimit(callsPerSecond: 1, burst: 50)
    /// New guests from one host, in addition to `attemptsPerHost`. Default 1,000 at once, then one in 60 seconds: one network
    /// cannot use up `guests`.
    public var guestsPerHost = RateLimit(callsPerSecond: 1.0 / 60, burst: 1_000)
    /// Sessions that are renewed, listed, labelled and ended from one host. Default 1,000 at once, then 20 a second.
    public var renewalsPerHost = RateLimit(callsPerSecond: 20, burst: 1_000)
    /// Addresses, connections and hosts, each, whose rates are tracked. Default 10,000; above it, entries that are restored
    /// soonest are evicted, and new entries start with the use of the evicted ones.
    public var rateEntries = 10_000

    /// Accounts in total. Default 1,000,000; more fail with `limitReached`.
    public var accounts = 1_000_000
    /// Guests among the accounts, which any caller can create; more fail with `limitReached`. Default 900,000: this leaves room
    /// for accounts with an address. From three quarters on, a guest expires when it has been inactive for longer than it was
    /// active, at least for a day.
    public var guests = 900_000
    /// Sessions of one account; one more ends the oldest. Default 20.
    public var sessionsPerAccount = 20
    /// The lifetime of a session without renewal. Default 60 days.
    public var sessionLifetime = Duration.seconds(60 * 24 * 60 * 60)
    /// The time for which a used refresh token may be used once more, while its successor has not been used. It lets a client
    /// that has lost the response continue. Default 30 seconds.
    public var refreshReuseWindow = Duration.seconds(30)
    /// The time after a sign-in in which a user may change the account's address, or delete the account without a code. Default
    /// 10 minutes.
    public var recentSignInTime = Duration.seconds(10 * 60)
    /// The lifetime of an access token. Default 15 minutes.
    public var accessLifetime = Duration.seconds(15 * 60)
    /// Calls that may wait for their turn at the store, which is fair to networks and their hosts. Default 10,000; above it, the
    /// newest of the host with the most fails with `limitReached`. In a cluster, requests
    /// of each node to the coordination store without a response, at most 1,000.
    public var queuedRequests = 10_000

    /// Creates limits with the default values.
    public init() {}
}
