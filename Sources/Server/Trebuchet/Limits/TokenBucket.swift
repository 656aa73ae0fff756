internal import Bytes
internal import Platform

extension RateLimit {
    /// The limit of a network whose hosts have this limit.
    package var ofNetwork: RateLimit {
        RateLimit(callsPerSecond: callsPerSecond * Double(NetworkQuota.hosts), burst: NetworkQuota.limit(burst))
    }
}

/// A token bucket that refills with time; each call takes one token or more. Pure: the time is a parameter.
package struct TokenBucket {
    private let limit: RateLimit
    private var tokens: Double
    private var filled: UInt64

    package init(_ limit: RateLimit, now: UInt64) {
        self.limit = limit
        tokens = Double(limit.burst)
        filled = now
    }

    /// Creates the bucket that is full at a time, but has at least one token.
    init(_ limit: RateLimit, fullAt time: UInt64, now: UInt64) {
        self.init(limit, now: now)
        let missing = Double(time > now ? time - now : 0) / 1e9 * limit.callsPerSecond
        tokens = max(1, tokens - missing)
    }

    private func tokens(at now: UInt64) -> Double {
        let seconds = now > filled ? Double(now - filled) / 1e9 : 0
        return min(Double(limit.burst), tokens + seconds * limit.callsPerSecond)
    }

    /// Returns the time in milliseconds until `count` tokens can be taken, at most as many as `burst`; nil if they can be taken now.
    /// Takes nothing.
    package func wait(_ count: Int = 1, at now: UInt64) -> Int? {
        let missing = Double(min(count, limit.burst)) - tokens(at: now)
        return missing > 0 ? Int((missing / limit.callsPerSecond * 1000).rounded(.up)) : nil
    }

    /// Takes `count` tokens, at most as many as `burst`, whether they are there or not.
    package mutating func take(_ count: Int = 1, at now: UInt64) {
        tokens = tokens(at: now) - Double(min(count, limit.burst))
        filled = max(filled, now)
    }

    /// Takes tokens as `take` if they are there. Returns nil if the calls are permitted, else the time to wait in milliseconds.
    package mutating func consume(_ count: Int = 1, at now: UInt64) -> Int? {
        if let wait = wait(count, at: now) { return wait }
        take(count, at: now)
        return nil
    }

    /// Gives back a token that was taken.
    mutating func giveBack() { tokens += 1 }

    package func isFull(at now: UInt64) -> Bool { timeToFull(at: now) <= 0 }

    /// Returns the time until the bucket is full, in seconds; not above 0 when it is.
    func timeToFull(at now: UInt64) -> Double {
        (Double(limit.burst) - tokens) / limit.callsPerSecond - Double(now - min(filled, now)) / 1e9
    }
}

/// The token buckets of one connection.
final class ConnectionBuckets {
    private var connection: TokenBucket?
    private var methods: [RatedMethod: TokenBucket] = [:]

    /// Takes a token for a call from each bucket that applies. Returns nil if the call is permitted, else the party over its
    /// limit, the setting and the time to wait in milliseconds.
    ///
    /// - Parameter type: The type of the called actor; nil where no rate of a method can apply.
    func consume(
        _ target: String, of type: ActorType?, _ rates: ServerLimits.CallRates,
        _ principals: ShardedBuckets<PrincipalName>?, _ principal: Principal?,
        at now: UInt64
    ) -> (what: String, setting: String, milliseconds: Int)? {
        if let method = type.map({ RatedMethod(target, of: $0) }), let limit = rates.perMethod[method],
            let wait = methods[method, default: TokenBucket(limit, now: now)].consume(at: now)
        {
            return ("calls of \(target.prefix(bytes: 128))", "calls.rate.perMethod", wait)
        }
        if let limit = rates.perConnection {
            if connection == nil { connection = TokenBucket(limit, now: now) }
            if let wait = connection?.consume(at: now) {
                return ("calls of this connection", "calls.rate.perConnection", wait)
            }
        }
        if let principals, let principal, let wait = principals.consume(principal.name, at: now) {
            return ("calls of '\(principal.id)'", "calls.rate.perPrincipal", wait)
        }
        return nil
    }
}
