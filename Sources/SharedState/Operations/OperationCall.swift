internal import Relays

/// One call of an operation: settles once, with a value or an error, and goes on when nobody holds it.
public final class OperationCall<Output: Sendable>: Sendable {
    private let task: Task<Output, any Error>

    /// - Parameter settle: Called once, on the main actor.
    @MainActor
    init(
        _ work: @escaping @isolated(any) @Sendable () async throws -> Output,
        settle: @escaping @MainActor (Result<Output, any Error>) -> Void
    ) {
        // One task both waits for the work and settles: whatever happens, it comes to its end once.
        task = Task { @MainActor in
            let result = await Self.outcome(of: work)
            settle(result)
            return try result.get()
        }
    }

    /// The outcome, after the callbacks. Cancelling a task that waits here cancels the call.
    public var value: Output {
        get async throws {
            try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        }
    }

    /// Cancels the work and settles the call with `CancellationError`, unless it has an outcome by then.
    ///
    /// The call settles without waiting for the work to notice.
    public func cancel() { task.cancel() }

    /// What the work comes to, or `CancellationError` as soon as this task is cancelled.
    ///
    /// On the main actor from the end of the work on: of two calls whose work ends there, the first to end is the first to settle.
    @MainActor
    private static func outcome(
        of work: @escaping @isolated(any) @Sendable () async throws -> Output
    ) async -> Result<Output, any Error> {
        guard !Task.isCancelled else { return .failure(CancellationError()) }
        let outcome = StateRelay<Result<Output, any Error>?>(nil)
        let worker = Task {
            do {
                outcome.update(.success(try await work()))
            } catch {
                outcome.update(.failure(error))
            }
        }
        for await case let result? in outcome.stream { return result }
        worker.cancel()
        return outcome.currentValue ?? .failure(CancellationError())
    }
}
