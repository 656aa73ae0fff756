internal import Trebuchet

/// The commits that wait for one batch. Only the store's acknowledgement of a write makes them succeed.
///
/// It is used in its collection's isolation only.
final class PendingBatch {
    typealias Continuation = CheckedContinuation<Result<Void, CollectionError>, Never>

    private var waiters: [(continuation: Continuation, connection: CallerConnection?)] = []

    var isEmpty: Bool { waiters.isEmpty }

    /// The waiting connections; nil is an administrator.
    var connections: [CallerConnection?] { waiters.map(\.connection) }

    func addWaiter(_ continuation: Continuation, of connection: CallerConnection?) {
        waiters.append((continuation, connection))
    }

    /// Completes all waiting commits: the store has the batch.
    func succeed(_ acknowledgement: StoredCollection.Acknowledgement) { finish(.success(())) }

    /// Completes all waiting commits with an error.
    func fail(_ error: CollectionError) { finish(.failure(error)) }

    private func finish(_ result: Result<Void, CollectionError>) {
        let ended = waiters
        waiters = []
        for waiter in ended { waiter.continuation.resume(returning: result) }
    }
}
