internal import Platform
internal import Synchronization
internal import Transports
package import Trebuchet

/// The keys of one issuer: fetched at their first use, cached, and shared by all tokens. At most one fetch is in progress.
package final class IssuerKeys: Sendable {
    /// The reason why no key verifies a token.
    package enum Failure: Error, Equatable {
        /// The issuer has no such key.
        case unknownKey
        /// The key that the token names has not signed it.
        case wrongSignature
        /// The keys cannot be fetched. The next fetch is permitted after the time.
        case unavailable(retryAfter: Duration)
    }

    /// The cached keys, and the fetch in progress.
    private struct State {
        var cache: KeyCache
        var fetch: Task<Void, Never>?
    }

    private let source: KeySource
    private let name: String
    private let timeout: Duration
    private let uptime: @Sendable () -> Int64
    private let report: @Sendable (ServerEvent.Level, String) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - name: the issuer for the log, such as `provider 'google'`.
    ///   - timeout: the time limit of a fetch.
    ///   - staleTime: the time after their expiry for which keys are used while they cannot be fetched.
    ///   - uptime: monotonic milliseconds.
    ///   - report: receives a `warning` at the beginning of an outage, and a `notice` at its end.
    package init(
        from source: KeySource, of name: String, timeout: Duration, staleTime: Duration,
        uptime: @escaping @Sendable () -> Int64, report: @escaping @Sendable (ServerEvent.Level, String) -> Void
    ) {
        (self.source, self.name, self.timeout, self.uptime, self.report) = (source, name, timeout, uptime, report)
        state = Mutex(State(cache: KeyCache(staleTime: staleTime)))
    }

    /// Verifies the signature of a token. Returns if a key of the issuer has made it with the algorithm that the token names.
    package func verify(_ token: SignedToken) async throws(Failure) {
        guard let algorithm = JSONWebTokenAlgorithm(name: token.algorithm) else { throw .unknownKey }
        var hasWaited = false
        while true {
            var step = advance(hasWaited) { $0.step(token.keyID, algorithm, at: $1) }
            if case .verify(let keys) = step {
                if keys.contains(where: { token.isSigned(by: $0.key) }) { return }
                step = advance(hasWaited) { $0.stepAfterMismatch(token.keyID, at: $1) }
            }
            switch step {
            case .verify: throw .wrongSignature  // never a step after a mismatch
            case .fail(let failure): throw failure
            case .wait(let fetch):
                await fetch.value
                hasWaited = true
            }
        }
    }

    /// Fetches the keys now, also if they are cached. Returns whether this succeeded.
    package func refresh() async -> Bool {
        // A fetch that is in progress may have read older keys.
        if let fetch = state.withLock({ $0.fetch }) { await fetch.value }
        await state.withLock { startFetch(&$0) }.value
        return state.withLock { !$0.cache.hasFailed }
    }

    // MARK: Steps

    /// A step, with the fetch that it has begun or joined.
    private enum Step {
        case verify([PublishedKey])
        case wait(Task<Void, Never>)
        case fail(Failure)
    }

    /// Decides the next step and starts the fetch that it requires, together, so that concurrent tokens do not start two.
    ///
    /// - Parameter hasWaited: whether the token has waited for a fetch, which it does once.
    private func advance(_ hasWaited: Bool, _ decide: (KeyCache, Int64) -> KeyCache.Step) -> Step {
        let now = uptime()
        return state.withLock { state in
            switch decide(state.cache, now) {
            case .verify(let keys, let isRefreshDue):
                if isRefreshDue { startFetch(&state) }
                return .verify(keys)
            case .fetch:
                guard !hasWaited else { return .fail(.unavailable(retryAfter: .milliseconds(KeyCache.failurePause))) }
                return .wait(startFetch(&state))
            case .unknownKey:
                if !hasWaited, let fetch = state.fetch { return .wait(fetch) }
                return .fail(.unknownKey)
            case .wrongSignature: return .fail(.wrongSignature)
            case .unavailable(let pause):
                if !hasWaited, let fetch = state.fetch { return .wait(fetch) }
                return .fail(.unavailable(retryAfter: .milliseconds(pause)))
            }
        }
    }

    // MARK: Fetches

    /// Starts a fetch, unless one is in progress.
    @discardableResult
    private func startFetch(_ state: inout State) -> Task<Void, Never> {
        if let fetch = state.fetch { return fetch }
        // Detached, because it is not part of the work for the client whose token is the first one.
        let fetch = Task.detached { await self.fetchKeys() }
        state.fetch = fetch
        return fetch
    }

    private func fetchKeys() async {
        do throws(TransportError) {
            let (keys, lifetime) = try await source.fetch(within: timeout)
            let isEndOfOutage = state.withLock { state in
                state.fetch = nil
                return state.cache.fetched(keys, lifetime: lifetime, at: uptime())
            }
            if isEndOfOutage { report(.notice, "the keys of \(name) are fetched again") }
        } catch {
            let now = uptime()
            let (isStart, rest) = state.withLock { state in
                state.fetch = nil
                return (state.cache.failed(at: now), state.cache.remainingTime(at: now))
            }
            guard isStart else { return }
            report(
                .warning,
                "fetching the keys of \(name) failed: \(error); "
                    + (rest > 0
                        ? "the cached keys stay valid for \((rest + 59_999) / 60_000) minutes"
                        : "none are cached, so that its tokens cannot be verified"))
        }
    }
}
