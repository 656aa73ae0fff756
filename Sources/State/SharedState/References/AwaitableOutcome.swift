internal import Relays

/// An outcome that tasks can await.
struct AwaitableOutcome<Success: Sendable>: Sendable {
    private let result = StateRelay<Result<Success, any Error>?>(nil)

    func set(_ result: Result<Success, any Error>) { self.result.update(result) }

    /// Waits for the outcome. Throws `CancellationError` when the waiting task is cancelled.
    func get(isolation: isolated (any Actor)? = #isolation) async throws -> Success {
        for await case let result? in result.stream { return try result.get() }
        throw CancellationError()
    }
}
