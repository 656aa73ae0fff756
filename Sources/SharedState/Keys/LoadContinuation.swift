/// Takes the outcome of a load: the first one given counts. Usable from any thread.
///
/// Dropped without an outcome, it fails the load with ``AbandonedContinuation``.
public struct LoadContinuation<Value: Sendable>: Sendable {
    private let outcome: KeyOutcome<Value?>

    init(_ receiver: @escaping KeyOutcome<Value?>.Receiver) { outcome = KeyOutcome(receiver) }

    /// The value was loaded.
    public func resume(returning value: Value) { outcome.tell(.success(value)) }

    /// There is nothing to load: the value is the one that the first wrapper gave.
    public func resumeReturningInitialValue() { outcome.tell(.success(nil)) }

    /// Loading failed: the value stays, and the error is the wrapper's `loadError`.
    public func resume(throwing error: any Error) { outcome.tell(.failure(error)) }

    /// Resumes with a value, with an error, or with nil for the initial value.
    public func resume(with result: Result<Value?, any Error>) { outcome.tell(result) }
}

/// Takes the outcome of a save: the first one given counts. Usable from any thread.
///
/// Dropped without an outcome, it fails the save with ``AbandonedContinuation``.
public struct SaveContinuation: Sendable {
    private let outcome: KeyOutcome<Void>

    init(_ receiver: @escaping KeyOutcome<Void>.Receiver) { outcome = KeyOutcome(receiver) }

    /// The value was saved.
    public func resume() { outcome.tell(.success(())) }

    /// Saving failed: the value stays, and the error is the wrapper's `saveError`.
    public func resume(throwing error: any Error) { outcome.tell(.failure(error)) }

    /// The value was saved, or saving failed.
    public func resume(with result: Result<Void, any Error>) { outcome.tell(result) }
}
