internal import Platform

/// The keys of a provider, and the times at which they are fetched. Pure: times are milliseconds.
struct KeyCache {
    enum LookupResult {
        /// The keys that may verify the token.
        case keys([SigningKey])
        case fetch
        case unknownKey
        case unavailable
    }

    private static let minute: Int64 = 60_000
    /// The minimum time between two fetches for an unknown key.
    static let unknownKeyPause = minute
    /// The delay after a failed fetch.
    static let failurePause: Int64 = 10_000
    static let shortest = 5 * minute
    static let longest = 24 * 60 * minute
    static let usual = 60 * minute

    private var keys: [SigningKey] = []
    private var fetchedAt: Int64?
    private var failedAt: Int64?
    private var expiry: Int64 = 0

    /// Returns the next step for a token with this head.
    func answer(_ head: IDToken.Header, at now: Int64) -> LookupResult {
        let matching = keys.filter { key in
            key.algorithm == head.alg
                && (head.kid == nil || key.id == nil || key.id?.isSameBytes(as: head.kid ?? "") == true)
        }
        let mayFetch = failedAt.map { now - $0 >= Self.failurePause } ?? true
        guard let fetchedAt else { return mayFetch ? .fetch : .unavailable }
        if now >= expiry {
            if mayFetch { return .fetch }
            // The provider is unreachable: keys fetched within the last day are still used.
            return now - fetchedAt < Self.longest && !matching.isEmpty ? .keys(matching) : .unavailable
        }
        if !matching.isEmpty { return .keys(matching) }
        guard now - max(fetchedAt, failedAt ?? fetchedAt) >= Self.unknownKeyPause else { return .unknownKey }
        return .fetch
    }

    mutating func fetched(_ keys: [SigningKey], lifetime: Int64, at now: Int64) {
        self.keys = keys
        (fetchedAt, failedAt) = (now, nil)
        expiry = now + lifetime
    }

    mutating func failed(at now: Int64) { failedAt = now }

    /// Returns the cache lifetime of a response (RFC 9111 §5.2), within bounds, in milliseconds.
    ///
    /// - Parameter directives: the elements of `Cache-Control`.
    static func lifetime(_ directives: [String]) -> Int64 {
        var lifetime = usual
        for directive in directives {
            let parts = directive.split(separator: "=", maxSplits: 1).map { $0.lowercased() }
            switch parts.first {
            case "no-store", "no-cache": return shortest
            case "max-age" where parts.count == 2:
                guard let seconds = Int64(parts[1].filter { $0 != "\"" }), seconds >= 0 else { return shortest }
                lifetime = seconds > longest / 1000 ? longest : seconds * 1000
            default: break
            }
        }
        return min(max(lifetime, shortest), longest)
    }
}
