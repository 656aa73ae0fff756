/// How the operations on a shared value go.
public enum OperationStatus: String, Sendable, Hashable, CaseIterable {
    /// There was no operation, or it was forgotten by a reset.
    case idle
    /// An operation is under way.
    case pending
    /// The last operation came to a success.
    case success
    /// The last operation failed.
    case error
}
