internal import Relays

/// One call of an operation. It settles once, with a value or an error, and continues when it is released.
public final class OperationCall<Output: Sendable>: Sendable {
    private let settled: StateRelay<Result<Output, any Error>?>
    /// Weak: the code that reports the outcome retains it. When it is released unreported, that is the outcome.
    private weak let outcome: OperationOutcome<Output>?
    private let worker: Task<Void, Never>?

    /// Starts a call with a task.
    ///
    /// - Parameter settle: Called once, on the main actor.
    @MainActor
    convenience init(
        _ work: @escaping @isolated(any) @Sendable () async throws -> Output,
        settle: @escaping @MainActor (Result<Output, any Error>) -> Void
    ) {
        let outcome = OperationOutcome<Output>()
        let worker = Task {
            // A call that is cancelled at once does not begin.
            guard !Task.isCancelled else { return }
            do {
                outcome.report(.success(try await work()))
            } catch {
                outcome.report(.failure(error))
            }
        }
        self.init(outcome, worker, settle: settle)
    }

    /// Starts a call whose outcome is reported by other code.
    ///
    /// - Parameter settle: Called once, on the main actor, in the order of the outcomes.
    @MainActor
    init(
        _ outcome: OperationOutcome<Output>, _ worker: Task<Void, Never>? = nil,
        settle: @escaping @MainActor (Result<Output, any Error>) -> Void
    ) {
        let settled = StateRelay<Result<Output, any Error>?>(nil)
        (self.settled, self.outcome, self.worker) = (settled, outcome, worker)
        outcome.observe { result in
            settle(result)
            settled.update(result)
        }
    }

    /// The outcome, after the callbacks. Cancellation of a waiting task cancels the call.
    public var value: Output {
        get async throws {
            let waiting = Task { [settled] in
                for await case let result? in settled.stream { return try result.get() }
                throw CancellationError()
            }
            return try await withTaskCancellationHandler {
                try await waiting.value
            } onCancel: {
                cancel()
            }
        }
    }

    /// Cancels the work and settles the call with `CancellationError`, unless it already has an outcome.
    ///
    /// The call settles without waiting for the reaction of the work.
    public func cancel() {
        outcome?.report(.failure(CancellationError()))
        worker?.cancel()
    }
}
