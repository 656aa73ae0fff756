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

/// What the server has refused of a write for which nobody waits any more: it was made before a restart of the app, or before its
/// account was signed out.
public struct LateRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The document.
    public let id: String
    /// As it is called on the wire: `create`, `update`, `merge`, `increment`, `link`, `unlink`, `expire`, `delete` or `check`.
    public let command: String
    public let reason: CollectionError

    public var description: String {
        "the \(command) of document '\(id)', made earlier, was refused: \(reason)"
    }
}
