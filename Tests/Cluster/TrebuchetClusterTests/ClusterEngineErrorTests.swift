import Platform
import Testing

@testable import TrebuchetCluster

struct ClusterEngineErrorTests {
    private let backoff = Backoff(first: .nanoseconds(1), limit: .nanoseconds(1))

    /// Returns the number of requests, the number of reported waits and the last error, when the first requests fail.
    private func retry(
        _ codes: [ClusterEngineError.Code], for timeout: Duration
    ) async -> (requests: Int, waits: Int, error: ClusterEngineError.Code?) {
        var (requests, waits) = (0, 0)
        do throws(ClusterEngineError) {
            try await ClusterEngineError.retry(for: timeout, backoff: backoff) { _ in
                waits += 1
            } _: { () async throws(ClusterEngineError) in
                defer { requests += 1 }
                if requests < codes.count { throw ClusterEngineError(codes[requests], "") }
            }
            return (requests, waits, nil)
        } catch {
            return (requests, waits, error.code)
        }
    }

    @Test("a request is repeated while the coordination store does not respond, and the wait is reported once")
    func temporary() async {
        #expect(await retry([], for: .seconds(600)) == (1, 0, nil))
        #expect(await retry([.unavailable, .unknownOutcome, .overloaded], for: .seconds(600)) == (4, 1, nil))
    }

    @Test("a permanent error and the end of the time end the repetition")
    func permanent() async {
        #expect(await retry([.unavailable, .unsupported], for: .seconds(600)) == (2, 1, .unsupported))
        #expect(await retry([.unavailable], for: .zero) == (1, 0, .unavailable))
    }
}
