internal import Networking
internal import Synchronization
package import Transports

/// Limits the time to wait for an operation.
package enum TimeLimit {
    /// Runs `work`. If it takes longer than `limit`, cancels its task and throws `timeout` without waiting for it.
    package static func run(
        _ limit: Duration, on loop: any EventLoop, _ work: @escaping @Sendable () async throws -> Void
    ) async throws {
        try await withCheckedThrowingContinuation { continuation in
            let race = Race(continuation)
            loop.holdTime()
            let task = Task {
                defer { loop.releaseTime() }
                do {
                    try await work()
                    race.finish(.success(()))
                } catch {
                    race.finish(.failure(error))
                }
            }
            loop.execute {
                guard !race.hasEnded else { return }
                let timer = loop.schedule(after: limit) {
                    task.cancel()
                    race.finish(.failure(TrebuchetError(.timeout, "it took longer than \(limit)")))
                }
                let end = LoopBound(timer, on: loop)
                race.whenEnded { loop.execute { end.value.cancel() } }
            }
        }
    }

    /// Resumes the caller at the first of two ends.
    private final class Race: Sendable {
        private struct State {
            var continuation: CheckedContinuation<Void, any Error>?
            var whenEnded: (@Sendable () -> Void)?
        }

        private let state: Mutex<State>

        init(_ continuation: CheckedContinuation<Void, any Error>) {
            state = Mutex(State(continuation: continuation))
        }

        var hasEnded: Bool { state.withLock { $0.continuation == nil } }

        func finish(_ outcome: Result<Void, any Error>) {
            let (continuation, then) = state.withLock { state in
                defer { state = State() }
                return (state.continuation, state.whenEnded)
            }
            continuation?.resume(with: outcome)
            then?()
        }

        func whenEnded(_ body: @escaping @Sendable () -> Void) {
            let hasEnded = state.withLock { state in
                if state.continuation != nil { state.whenEnded = body }
                return state.continuation == nil
            }
            if hasEnded { body() }
        }
    }
}
