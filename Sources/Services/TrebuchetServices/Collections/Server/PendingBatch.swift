internal import Trebuchet
internal import TrebuchetActors
internal import Transports

/// The commits that wait for one batch. Only the store's acknowledgement of a write makes them succeed.
///
/// It is used in its collection's isolation only.
final class PendingBatch {
    /// A commit that waits in its task.
    private final class Waiter {
        let connection: CallerConnection?
        var task: SuspendedTask?
        var result: Result<Void, CollectionError> = .success(())

        init(_ connection: CallerConnection?) { self.connection = connection }
    }

    /// The maximum number of held responses, which are sent in one turn.
    private static let maximumGated = 1_024

    private var waiters: [Waiter] = []

    /// The responses of commits that have returned, and their connections.
    private var gate: ResponseGate?
    private var gated: [CallerConnection] = []

    var isEmpty: Bool { waiters.isEmpty && gated.isEmpty }

    /// For tests.
    var gatedCount: Int { gated.count }

    /// The waiting connections; nil is an administrator.
    var connections: [CallerConnection?] { waiters.map(\.connection) + gated }

    /// Holds the response of the calling commit, which must return without suspending.
    ///
    /// - Parameters:
    ///   - shard: that of the collection's reactor.
    ///   - result: creates the result at the end of the batch; nil for the returned one.
    /// - Returns: false when the commit must wait itself.
    func deferResponse(
        of connection: CallerConnection, on shard: SystemShard?, result: (() throws -> _CallResult)?
    ) -> Bool {
        guard let shard, gated.count < Self.maximumGated else { return false }
        let gate = gate ?? ResponseGate(on: shard)
        guard shard.deferResponse(until: gate, result: result) else { return false }
        self.gate = gate
        gated.append(connection)
        return true
    }

    /// Returns when the batch has ended.
    func wait(
        for connection: CallerConnection?, on tasks: TaskSuspender, isolation: isolated (any Actor)? = #isolation
    ) async throws(CollectionError) {
        let waiter = Waiter(connection)
        waiters.append(waiter)
        await tasks.suspend { waiter.task = $0 }
        try waiter.result.get()
    }

    /// Completes all waiting commits: the store has the batch.
    func succeed(_ acknowledgement: StoredCollection.Acknowledgement) { finish(.success(())) }

    /// Completes all waiting commits with an error.
    func fail(_ error: CollectionError) { finish(.failure(error)) }

    private func finish(_ result: Result<Void, CollectionError>) {
        let (ended, gate) = (waiters, gate)
        (waiters, gated, self.gate) = ([], [], nil)
        if case .failure(let error) = result { gate?.open(failing: error) } else { gate?.open(failing: nil) }
        for waiter in ended {
            waiter.result = result
            waiter.task?.resume()
        }
    }
}
