/// The properties of a value that show the state of its operations, and the rule for pending.
///
///     extension OperationSlot where Value == Profile {
///         static let upload = OperationSlot(status: \.uploadStatus, error: \.uploadError)
///     }
///
/// A value can have several slots with independent calls. Slots with the same status are the same.
public struct OperationSlot<Value: Sendable>: Sendable {
    let status: any WritableKeyPath<Value, OperationStatus> & Sendable
    let error: any WritableKeyPath<Value, (any Error)?> & Sendable
    let pending: OperationPending

    /// Creates a slot.
    ///
    /// - Parameter pending: The condition for a pending status. Default: the newest call.
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

/// The condition for a pending status when calls overlap.
public enum OperationPending: Sendable, Hashable {
    /// Until the newest call has settled.
    case newestCall
    /// Until all calls have settled; the outcome is then that of the newest.
    case anyCall
}

/// The state of the operations on a shared value.
public enum OperationStatus: String, Sendable, Hashable, CaseIterable {
    /// There was no operation, or a reset removed it.
    case idle
    /// An operation is running.
    case pending
    /// The last operation succeeded.
    case success
    /// The last operation failed.
    case error
}
