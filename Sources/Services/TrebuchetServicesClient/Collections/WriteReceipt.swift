internal import SharedState

/// The outcome of a write, settled once.
final class WriteReceipt: Sendable {
    let outcome: OperationOutcome<Void>
    private let onWithdraw: @Sendable () -> Void

    init(onWithdraw: @escaping @Sendable () -> Void) {
        outcome = OperationOutcome()
        self.onWithdraw = onWithdraw
    }

    /// Creates the receipt of a write that is already settled.
    init(_ result: Result<Void, any Error>) {
        outcome = OperationOutcome(result)
        onWithdraw = {}
    }

    /// Settles the receipt; only the first outcome counts.
    func settle(_ result: Result<Void, any Error>) { outcome.report(result) }

    /// Withdraws the write, unless it may have reached the server.
    func withdraw() { onWithdraw() }
}

/// A write that the server has refused and that no caller waits for: it was made before a restart of the app, or its account
/// was signed out since.
public struct WriteRejectedError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The id of the document.
    public let id: String
    /// The name of the command on the wire: `create`, `update`, `merge`, `increment`, `link`, `unlink`, `expire`, `delete` or
    /// `check`.
    public let command: String
    /// The reason of the refusal.
    public let reason: CollectionError

    public var description: String {
        "the \(command) of document '\(id)', made earlier, was refused: \(reason)"
    }
}
