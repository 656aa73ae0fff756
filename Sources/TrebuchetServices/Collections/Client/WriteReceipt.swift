internal import SharedState

/// What becomes of a write, told once.
final class WriteReceipt: Sendable {
    let outcome: OperationOutcome<Void>
    private let takeBack: @Sendable () -> Void

    init(takeBack: @escaping @Sendable () -> Void) {
        outcome = OperationOutcome()
        self.takeBack = takeBack
    }

    /// Of a write that is settled already.
    init(_ result: Result<Void, any Error>) {
        outcome = OperationOutcome(result)
        takeBack = {}
    }

    /// The first outcome counts.
    func settle(_ result: Result<Void, any Error>) { outcome.tell(result) }

    /// Takes the write back, unless it may have reached the server.
    func withdraw() { takeBack() }
}

/// What the server has refused of a write for which nobody waits any more: it was made before a restart of the app, or before its
/// account was signed out.
public struct LateRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The document.
    public let id: String
    /// As it is called on the wire: `create`, `update`, `merge`, `increment`, `link`, `unlink`, `expire`, `delete` or `check`.
    public let command: String
    /// Why the server refused it.
    public let reason: CollectionError

    public var description: String {
        "the \(command) of document '\(id)', made earlier, was refused: \(reason)"
    }
}
