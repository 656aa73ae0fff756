/// What a member knows of its connection to the engine, at times of the member's clock.
struct EngineContact {
    /// How long requests may wait without any answer before the engine counts as silent.
    static let patience: UInt64 = 2_000_000_000

    private var requests = 0
    /// Since when requests wait and none was answered.
    private var silentSince: UInt64 = 0
    private var error: ClusterEngineError?
    private var isErrorOfWrite = false
    private var hasFailed = false
    private var hasWritten = false
    /// When the newest announcement or renewal was sent that the engine has taken.
    private(set) var confirmedAt: UInt64?

    mutating func beginRequest(at now: UInt64) {
        if requests == 0 { silentSince = now }
        requests += 1
    }

    /// - Parameter isWrite: whether the engine had to write something: with its memory or its disk full it may still answer questions.
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

    /// An error is over when a whole round passed without one, and what had failed was tried again.
    mutating func endRound() {
        if !hasFailed, hasWritten || !isErrorOfWrite { error = nil }
    }

    /// What was before counts no more; requests under way go on.
    mutating func beginAgain() { (error, confirmedAt) = (nil, nil) }

    /// What the engine failed with last, or that it is silent; nil when it answers.
    func trouble(at now: UInt64) -> ClusterEngineError? {
        if let error { return error }
        guard requests > 0, now >= silentSince &+ Self.patience else { return nil }
        return ClusterEngineError(.unavailable, "no answer for \((now - silentSince) / 1_000_000_000) s")
    }
}
