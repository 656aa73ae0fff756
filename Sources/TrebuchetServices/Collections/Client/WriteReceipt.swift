internal import Relays

/// What becomes of a write, told once.
final class WriteReceipt: Sendable {
    private let outcome: StateRelay<Result<Void, any Error>?>
    private let takeBack: @Sendable () -> Void

    init(takeBack: @escaping @Sendable () -> Void) {
        outcome = StateRelay(nil)
        self.takeBack = takeBack
    }

    /// Of a write that is settled already.
    init(_ result: Result<Void, any Error>) {
        outcome = StateRelay(result)
        takeBack = {}
    }

    /// The first outcome counts.
    func settle(_ result: Result<Void, any Error>) { outcome.update { if $0 == nil { $0 = result } } }

    /// Takes the write back, unless it may have reached the server.
    func withdraw() { takeBack() }

    /// Returns when the server has kept the write, throws when it refuses it. On the main actor, so that of several the first to be
    /// settled is the first to return.
    @MainActor
    func wait() async throws {
        for await case let result? in outcome.stream { return try result.get() }
        throw CancellationError()
    }
}
