internal import Bytes
internal import Platform

/// How many calls may be made: so many a second in the long run, and a number at once.
public struct RateLimit: Sendable, Hashable {
    /// Calls a second in the long run; a part of one is fine: 0.1 is one in ten seconds.
    public var callsPerSecond: Double
    /// Calls that may come at once after a rest.
    public var burst: Int

    /// Both must be more than 0: with less it traps.
    public init(callsPerSecond: Double, burst: Int) {
        precondition(callsPerSecond > 0 && burst > 0, "a rate limit lets some calls through")
        self.callsPerSecond = callsPerSecond
        self.burst = burst
    }
}

/// A bucket of tokens that fills with time; each call takes one, or several. Pure: the time is given.
package struct TokenBucket {
    private let limit: RateLimit
    private var tokens: Double
    private var filled: UInt64

    package init(_ limit: RateLimit, now: UInt64) {
        self.limit = limit
        tokens = Double(limit.burst)
        filled = now
    }

    /// Nil when so many calls may be made now, of which more than there may be at once count as that many; else the time after
    /// which they may, in milliseconds.
    package mutating func take(_ count: Int = 1, at now: UInt64) -> Int? {
        let seconds = now > filled ? Double(now - filled) / 1e9 : 0
        filled = max(filled, now)
        tokens = min(Double(limit.burst), tokens + seconds * limit.callsPerSecond)
        let needed = Double(min(count, limit.burst))
        guard tokens < needed else {
            tokens -= needed
            return nil
        }
        return Int(((needed - tokens) / limit.callsPerSecond * 1000).rounded(.up))
    }

    package func isFull(at now: UInt64) -> Bool {
        tokens + Double(now - min(filled, now)) / 1e9 * limit.callsPerSecond >= Double(limit.burst)
    }
}

/// The buckets of one connection.
final class ConnectionBuckets {
    private var connection: TokenBucket?
    private var methods: [String: TokenBucket] = [:]

    /// Nil when a call may be made; else who is over the limit, which that is and for how many milliseconds.
    func take(
        _ target: String, _ limits: ServerLimits, _ principals: SharedBuckets<PrincipalName>?, _ principal: Principal?,
        at now: UInt64
    ) -> (what: String, setting: String, milliseconds: Int)? {
        if !limits.callsPerMethod.isEmpty, let limit = limits.callsPerMethod[target],
            let wait = methods[target, default: TokenBucket(limit, now: now)].take(at: now)
        {
            return ("calls of \(target.prefix(bytes: 128))", "callsPerMethod", wait)
        }
        if let limit = limits.callsPerConnectionRate {
            if connection == nil { connection = TokenBucket(limit, now: now) }
            if let wait = connection?.take(at: now) {
                return ("calls of this connection", "callsPerConnectionRate", wait)
            }
        }
        if let principals, let principal, let wait = principals.take(principal.name, at: now) {
            return ("calls of '\(principal.id)'", "callsPerPrincipalRate", wait)
        }
        return nil
    }
}
