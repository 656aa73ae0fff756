internal import Trebuchet

/// The commits that wait for one batch. Only the store's acknowledgement of a write makes them succeed.
///
/// It belongs to its collection, and is used in that one's isolation alone.
final class PendingBatch {
    typealias Continuation = CheckedContinuation<Result<Void, CollectionError>, Never>

    private var waiters: [(continuation: Continuation, connection: CallerConnection?)] = []

    var isEmpty: Bool { waiters.isEmpty }

    /// The connections that wait; nil stands for an administrator.
    var connections: [CallerConnection?] { waiters.map(\.connection) }

    func add(_ continuation: Continuation, of connection: CallerConnection?) {
        waiters.append((continuation, connection))
    }

    /// Answers all that still wait: the store has the batch.
    func succeed(_ acknowledgement: StoredCollection.Acknowledgement) { end(.success(())) }

    /// Answers all that still wait with an error.
    func fail(_ error: CollectionError) { end(.failure(error)) }

    private func end(_ result: Result<Void, CollectionError>) {
        let ended = waiters
        waiters = []
        for waiter in ended { waiter.continuation.resume(returning: result) }
    }
}
