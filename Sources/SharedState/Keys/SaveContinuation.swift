/// Takes the outcome of a save: the first one given counts. Usable from any thread.
///
/// Dropped without an outcome, it fails the save with ``AbandonedContinuation``.
public struct SaveContinuation: Sendable {
    private let outcome: KeyOutcome<Void>

    init(_ receiver: @escaping KeyOutcome<Void>.Receiver) { outcome = KeyOutcome(receiver) }

    public func resume() { outcome.tell(.success(())) }

    public func resume(throwing error: any Error) { outcome.tell(.failure(error)) }

    public func resume(with result: Result<Void, any Error>) { outcome.tell(result) }
}
