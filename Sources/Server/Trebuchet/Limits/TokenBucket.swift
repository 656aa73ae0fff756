internal import Bytes
internal import Platform
internal import WebSockets

/// The quotas and rates of a network of hosts, relative to those of one host.
package enum NetworkQuota {
    /// The number of hosts whose quotas a network has.
    package static let hosts = AddressKey.hostQuotasPerNetwork

    /// Returns the quota of a network.
    ///
    /// - Parameter perHost: the quota of a host.
    package static func limit(_ perHost: Int) -> Int { perHost > .max / hosts ? .max : perHost * hosts }
}

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
