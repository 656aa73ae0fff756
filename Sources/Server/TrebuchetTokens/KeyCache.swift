internal import Platform
internal import Trebuchet

/// The cached keys of one issuer, and the decisions when to fetch them. Pure: times are milliseconds of a monotonic clock.
///
/// Tokens of strangers cause no fetches beyond those that the pauses permit.
struct KeyCache {
    /// The next step for a token.
    enum Step {
        /// Verify the token with these keys. If `isRefreshDue`, fetch the keys in the background.
        case verify([PublishedKey], isRefreshDue: Bool)
        /// Wait for a fetch, then ask again.
        case fetch
        /// The issuer has no such key.
        case unknownKey
        /// The key that the token names has not signed it.
        case wrongSignature
        /// Keys are missing or outdated. The time is the remaining pause until the next fetch.
        case unavailable(Int64)
    }

    private static let second: Int64 = 1_000
    private static let minute = 60 * second
    private static let hour = 60 * minute

    /// The minimum, the maximum and the default time for which keys are valid after a fetch.
    static let shortestLifetime = minute
    static let longestLifetime = 24 * hour
    static let defaultLifetime = hour
    private static let longestStaleTime = 30 * 24 * hour
    /// The minimum time between a fetch and another one for an unknown key.
    static let unknownKeyPause = 30 * second
    /// The minimum time between a failed fetch and the next one for missing or outdated keys.
    static let failurePause = 10 * second
    /// The time after a failed fetch in which outdated keys are used without waiting for another one.
    private static let outagePause = minute
    /// The maximum number of keys that are tried for a token that names none. It limits the work for strangers.
    static let maximumCandidates = 4

    /// The time after their expiry for which keys are used while they cannot be fetched.
    private let staleTime: Int64
    private var keys: [PublishedKey] = []
    private var refreshTime: Int64 = 0
    private var expiry: Int64 = 0
    /// The end of the last fetch.
    private var attemptedAt: Int64?
    /// Indicates whether the last fetch has failed.
    private(set) var hasFailed = false

    /// - Parameter staleTime: at most 30 days are used.
    init(staleTime: Duration) { self.staleTime = min(Int64(staleTime.milliseconds), Self.longestStaleTime) }

    // MARK: Tokens

    /// Returns the next step for a token that names a key, or none.
    func step(_ id: String?, _ algorithm: JSONWebTokenAlgorithm, at now: Int64) -> Step {
        guard let attemptedAt, !keys.isEmpty, now < expiry || mayUseOutdated(at: now) else {
            return fetchOrWait(Self.failurePause, at: now)
        }
        // Outdated keys suffice only if a fetch has failed after their expiry, and not long ago.
        let mayFetch = now - attemptedAt >= Self.failurePause
        let isKnownOutage = attemptedAt >= expiry && now - attemptedAt < Self.outagePause
        if now >= expiry, mayFetch, !isKnownOutage { return .fetch }
        let candidates = candidates(id, algorithm)
        guard candidates.isEmpty else {
            return .verify(candidates, isRefreshDue: now >= refreshTime && mayFetch)
        }
        return stepForUnknownKey(at: now)
    }

    /// Returns the next step for a token that none of the candidates has signed.
    func stepAfterMismatch(_ id: String?, at now: Int64) -> Step {
        // An issuer does not use the name of a key for another one.
        if let id, keys.contains(where: { $0.id?.isSameBytes(as: id) == true }) { return .wrongSignature }
        return stepForUnknownKey(at: now)
    }

    private func stepForUnknownKey(at now: Int64) -> Step {
        let step = fetchOrWait(Self.unknownKeyPause, at: now)
        // After a failed fetch the key may be a new one, so the token may be valid.
        if case .unavailable = step, !hasFailed { return .unknownKey }
        return step
    }

    private func fetchOrWait(_ pause: Int64, at now: Int64) -> Step {
        guard let attemptedAt, now - attemptedAt < pause else { return .fetch }
        return .unavailable(pause - (now - attemptedAt))
    }

    private func mayUseOutdated(at now: Int64) -> Bool { hasFailed && now - expiry < staleTime }

    /// Returns the keys that may have signed a token: the one that it names, else some without a name.
    private func candidates(_ id: String?, _ algorithm: JSONWebTokenAlgorithm) -> [PublishedKey] {
        let suitable = keys.filter { $0.key.algorithm == algorithm }
        guard let id else { return Array(suitable.prefix(Self.maximumCandidates)) }
        let named = suitable.filter { $0.id?.isSameBytes(as: id) == true }
        return Array((named.isEmpty ? suitable.filter { $0.id == nil } : named).prefix(Self.maximumCandidates))
    }

    // MARK: Fetches

    /// - Parameter lifetime: the time for which the keys are valid, in milliseconds.
    /// - Returns: whether the fetch before this one had failed.
    mutating func fetched(_ keys: [PublishedKey], lifetime: Int64, at now: Int64) -> Bool {
        defer { hasFailed = false }
        self.keys = keys
        attemptedAt = now
        expiry = now + lifetime
        // In the last quarter of the lifetime, the next token causes a fetch in the background.
        refreshTime = now + lifetime / 4 * 3
        return hasFailed
    }

    /// Drops all keys: the issuer has withdrawn them, so that they must not be used during an outage either.
    mutating func withdraw() { keys = [] }

    /// - Returns: whether the fetch before this one had not failed.
    mutating func failed(at now: Int64) -> Bool {
        defer { hasFailed = true }
        attemptedAt = now
        return !hasFailed
    }

    /// Returns the remaining time in milliseconds for which the keys are used after a failed fetch; 0 without keys.
    func remainingTime(at now: Int64) -> Int64 { keys.isEmpty ? 0 : max(0, expiry + staleTime - now) }

    /// Returns the lifetime of keys by a response (RFC 9111 §5.2), within bounds, in milliseconds.
    ///
    /// - Parameter directives: the elements of `Cache-Control`.
    static func lifetime(_ directives: [String]) -> Int64 {
        var lifetime = defaultLifetime
        for directive in directives {
            let parts = directive.split(separator: "=", maxSplits: 1).map { $0.lowercased() }
            switch parts.first {
            case "no-store", "no-cache": return shortestLifetime
            case "max-age" where parts.count == 2:
                guard let seconds = Int64(parts[1].filter { $0 != "\"" }), seconds >= 0 else { return shortestLifetime }
                lifetime = seconds > longestLifetime / second ? longestLifetime : seconds * second
            default: break
            }
        }
        return min(max(lifetime, shortestLifetime), longestLifetime)
    }
}
