/// Where a value shows how its operations go, and what counts as pending.
///
///     extension OperationSlot where Value == Profile {
///         static let upload = OperationSlot(status: \.uploadStatus, error: \.uploadError)
///     }
///
/// A value can have several; the calls of each know nothing of the others. Slots with the same status are the same.
public struct OperationSlot<Value: Sendable>: Sendable {
    let status: any WritableKeyPath<Value, OperationStatus> & Sendable
    let error: any WritableKeyPath<Value, (any Error)?> & Sendable
    let pending: OperationPending

    /// - Parameter pending: What keeps the status pending. Default: the newest call.
    public init(
        status: any WritableKeyPath<Value, OperationStatus> & Sendable,
        error: any WritableKeyPath<Value, (any Error)?> & Sendable,
        pendingWhile pending: OperationPending = .newestCall
    ) {
        self.status = status
        self.error = error
        self.pending = pending
    }
}

/// How long a status stays pending when calls overlap.
public enum OperationPending: Sendable, Hashable {
    /// Until the newest call has settled.
    case newestCall
    /// Until all calls have settled; the outcome is then that of the newest.
    case anyCall
}

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
