/// Receives the outcome of a load: the first one counts. Usable from any thread.
///
/// Released without an outcome, it fails the load with ``AbandonedContinuation``.
public struct LoadContinuation<Value: Sendable>: Sendable {
    /// The file content that the value has seen, if it is stored in a file.
    let observed: ObservedFileContent
    private let outcome: KeyOutcome<VersionedRead<Value>>

    init(observed: ObservedFileContent, _ receiver: @escaping @Sendable (VersionedRead<Value>) -> Void) {
        self.observed = observed
        outcome = KeyOutcome(orElse: VersionedRead(.failure(AbandonedContinuation())), receiver)
    }

    /// Resumes with a loaded value.
    public func resume(returning value: Value) { resume(with: .success(value)) }

    /// Resumes without a value: the value is the initial one of the first wrapper.
    public func resumeReturningInitialValue() { resume(with: .success(nil)) }

    /// Resumes with an error: the value stays, and the error is the wrapper's `loadError`.
    public func resume(throwing error: any Error) { resume(with: .failure(error)) }

    /// Resumes with a value, with an error, or with nil for the initial value.
    public func resume(with result: Result<Value?, any Error>) { resume(with: VersionedRead(result)) }

    /// Resumes with the result or error of asynchronous work. The work runs in a separate task, which is never
    /// cancelled.
    public func resume(from work: @escaping @Sendable () async throws -> Value) {
        Task {
            do { resume(returning: try await work()) } catch { resume(throwing: error) }
        }
    }

    func resume(with reading: VersionedRead<Value>) { outcome.report(reading) }
}

/// Receives the outcome of a save: the first one counts. Usable from any thread.
///
/// Released without an outcome, it fails the save with ``AbandonedContinuation``.
public struct SaveContinuation: Sendable {
    /// The file content that the value has seen, if it is stored in a file.
    let observed: ObservedFileContent
    private let outcome: KeyOutcome<Result<Void, any Error>>

    init(observed: ObservedFileContent, _ receiver: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        self.observed = observed
        outcome = KeyOutcome(orElse: .failure(AbandonedContinuation()), receiver)
    }

    /// Resumes after a successful save.
    public func resume() { outcome.report(.success(())) }

    /// Resumes with an error: the value stays, and the error is the wrapper's `saveError`.
    public func resume(throwing error: any Error) { outcome.report(.failure(error)) }

    /// Resumes after asynchronous work, or with its error. The work runs in a separate task, which is never cancelled.
    public func resume(after work: @escaping @Sendable () async throws -> Void) {
        Task {
            do {
                try await work()
                resume()
            } catch {
                resume(throwing: error)
            }
        }
    }

    /// Resumes with success or an error.
    public func resume(with result: Result<Void, any Error>) { outcome.report(result) }
}
