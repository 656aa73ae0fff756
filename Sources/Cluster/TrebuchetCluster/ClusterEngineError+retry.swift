package import Platform

extension ClusterEngineError {
    /// Indicates whether the coordination store may respond to the same request later.
    package var isTemporary: Bool { code == .unavailable || code == .unknownOutcome || code == .overloaded }

    /// Repeats a request that may take effect several times, until the coordination store responds: nodes often start together with
    /// it.
    ///
    /// - Parameters:
    ///   - timeout: The time after which a failed request is not repeated.
    ///   - backoff: The delays between requests.
    ///   - onFirstFailure: Receives the first error that is followed by another request.
    /// - Throws: The last error.
    package static func retry<Response>(
        for timeout: Duration, backoff: Backoff = Backoff(first: .milliseconds(100), limit: .seconds(1)),
        onFirstFailure: (Self) -> Void, _ request: () async throws(Self) -> Response
    ) async throws(Self) -> Response {
        let deadline = MonotonicClock.now &+ timeout.nanoseconds
        var failures = 0
        while true {
            do throws(Self) {
                return try await request()
            } catch {
                failures += 1
                let delay = backoff.delay(afterFailures: failures)
                guard error.isTemporary, MonotonicClock.now &+ delay.nanoseconds < deadline else { throw error }
                if failures == 1 { onFirstFailure(error) }
                guard (try? await Task.sleep(for: delay)) != nil else { throw error }
            }
        }
    }
}
