/// The state of a member's connection to the coordination store, at times of the member's clock.
struct EngineConnectivity {
    /// The time in nanoseconds without any response to waiting requests after which the coordination store counts as
    /// silent.
    static let patience: UInt64 = 2_000_000_000

    private var requests = 0
    /// The time since which requests wait without a response.
    private var silentSince: UInt64 = 0
    private var error: ClusterEngineError?
    private var isErrorOfWrite = false
    private var hasFailed = false
    private var hasWritten = false
    /// The send time of the newest accepted announcement or renewal.
    private(set) var confirmedAt: UInt64?

    mutating func beginRequest(at now: UInt64) {
        if requests == 0 { silentSince = now }
        requests += 1
    }

    /// Records the end of a request.
    ///
    /// - Parameter isWrite: whether the request required a write: with full memory or disk, reads may still succeed.
    mutating func endRequest(begunAt: UInt64, at now: UInt64, isWrite: Bool, error failure: ClusterEngineError?) {
        requests -= 1
        silentSince = now
        if let failure {
            (error, isErrorOfWrite, hasFailed) = (failure, isWrite, true)
        } else if isWrite {
            hasWritten = true
            confirmedAt = max(confirmedAt ?? 0, begunAt)
        }
    }

    mutating func beginRound() { (hasFailed, hasWritten) = (false, false) }

    /// Ends a round. An error is cleared when a whole round passed without one, and the failed kind of request was
    /// repeated.
    mutating func endRound() {
        if !hasFailed, hasWritten || !isErrorOfWrite { error = nil }
    }

    /// Clears the earlier state; running requests continue.
    mutating func reset() { (error, confirmedAt) = (nil, nil) }

    /// Returns the last error of the coordination store, or its silence; nil when it responds.
    func engineError(at now: UInt64) -> ClusterEngineError? {
        if let error { return error }
        guard requests > 0, now >= silentSince &+ Self.patience else { return nil }
        return ClusterEngineError(.unavailable, "no response for \((now - silentSince) / 1_000_000_000) s")
    }
}
