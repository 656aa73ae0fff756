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
