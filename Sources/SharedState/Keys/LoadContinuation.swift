/// Takes the outcome of a load: the first one given counts. Usable from any thread.
///
/// Dropped without an outcome, it fails the load with ``AbandonedContinuation``.
public struct LoadContinuation<Value: Sendable>: Sendable {
    /// What the value has seen of its file, where it is kept in one.
    let seen: SeenContent
    private let outcome: KeyOutcome<Reading<Value>>

    init(seen: SeenContent, _ receiver: @escaping @Sendable (Reading<Value>) -> Void) {
        self.seen = seen
        outcome = KeyOutcome(orElse: Reading(.failure(AbandonedContinuation())), receiver)
    }

    /// The value was loaded.
    public func resume(returning value: Value) { resume(with: .success(value)) }

    /// There is nothing to load: the value is the one that the first wrapper gave.
    public func resumeReturningInitialValue() { resume(with: .success(nil)) }

    /// Loading failed: the value stays, and the error is the wrapper's `loadError`.
    public func resume(throwing error: any Error) { resume(with: .failure(error)) }

    /// Resumes with a value, with an error, or with nil for the initial value.
    public func resume(with result: Result<Value?, any Error>) { resume(with: Reading(result)) }

    /// Resumes with what asynchronous work returns or throws. The work runs in a task of its own, which nothing cancels.
    public func resume(from work: @escaping @Sendable () async throws -> Value) {
        Task {
            do { resume(returning: try await work()) } catch { resume(throwing: error) }
        }
    }

    func resume(with reading: Reading<Value>) { outcome.tell(reading) }
}

/// Takes the outcome of a save: the first one given counts. Usable from any thread.
///
/// Dropped without an outcome, it fails the save with ``AbandonedContinuation``.
public struct SaveContinuation: Sendable {
    /// What the value has seen of its file, where it is kept in one.
    let seen: SeenContent
    private let outcome: KeyOutcome<Result<Void, any Error>>

    init(seen: SeenContent, _ receiver: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        self.seen = seen
        outcome = KeyOutcome(orElse: .failure(AbandonedContinuation()), receiver)
    }

    /// The value was saved.
    public func resume() { outcome.tell(.success(())) }

    /// Saving failed: the value stays, and the error is the wrapper's `saveError`.
    public func resume(throwing error: any Error) { outcome.tell(.failure(error)) }

    /// Resumes when asynchronous work has ended, or with what it throws. The work runs in a task of its own, which nothing cancels.
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

    /// The value was saved, or saving failed.
    public func resume(with result: Result<Void, any Error>) { outcome.tell(result) }
}
