/// The calls of one slot, and the resulting status and error: pure logic, without tasks or values.
struct OperationLog {
    private(set) var status = OperationStatus.idle
    /// The error of the newest call, kept until a success or a reset.
    private(set) var error: (any Error)?
    private var newest: UInt64 = 0
    /// The outcome of the newest call, once it has settled.
    private var outcome: OperationStatus?
    /// Calls that have not settled and were not detached by a reset.
    private var pending: Set<UInt64> = []

    /// Creates a log.
    ///
    /// - Parameter error: the error of earlier calls.
    init(after error: (any Error)? = nil) { self.error = error }

    /// Begins a call and returns its number.
    mutating func startCall() -> UInt64 {
        newest += 1
        pending.insert(newest)
        outcome = nil
        status = .pending
        return newest
    }

    /// Settles a call. Calls that are not the newest, and those that a reset has detached, write nothing.
    mutating func settle(_ call: UInt64, _ failure: (any Error)?, pendingWhile rule: OperationPending) {
        guard pending.remove(call) != nil else { return }
        if call == newest {
            outcome = failure == nil ? .success : .error
            error = failure
        }
        guard let outcome, rule == .newestCall || pending.isEmpty else { return }
        status = outcome
    }

    /// Removes all calls and the error.
    mutating func reset() {
        pending.removeAll()
        outcome = nil
        error = nil
        status = .idle
    }
}
