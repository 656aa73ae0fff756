extension Shared {
    /// Begins an operation, and shows in the value how it goes.
    ///
    ///     func rename(to name: String, onError: (@MainActor (any Error) -> Void)? = nil) {
    ///         start(.rename, onError: onError) { try await server.rename(name) }
    ///     }
    ///
    /// - The status is pending, and `onAttempt` was called, when this returns. Then comes one of `onSuccess` and
    ///   `onError`, and last `onSettled`; before them, the outcome is in the value. All run on the main actor.
    /// - The callbacks of each call come exactly once, whatever becomes of wrappers, of later calls, or by a reset.
    /// - Only the newest call writes status and error. The error stays until a success, or until ``reset(_:)``.
    /// - Until it settles, a call holds the value as a wrapper does. What it writes is not saved by the key.
    ///
    /// - Parameter work: Runs in a task of its own.
    @MainActor
    @discardableResult
    public func start<Output: Sendable>(
        _ slot: OperationSlot<Value>,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (Output) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Output, any Error>) -> Void)? = nil,
        _ work: @escaping @isolated(any) @Sendable () async throws -> Output
    ) -> OperationCall<Output> {
        let settle = begin(slot, onAttempt, onSuccess, onError, onSettled)
        return OperationCall(work, settle: settle)
    }

    /// Begins an operation that has no task of its own, and shows in the value how it goes, as ``start`` does.
    ///
    /// Such operations settle in the order in which their outcomes were told.
    ///
    /// - Parameter outcome: told where the operation comes to its end. Of one call alone.
    @MainActor
    package func start<Output: Sendable>(
        _ slot: OperationSlot<Value>,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (Output) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Output, any Error>) -> Void)? = nil,
        until outcome: OperationOutcome<Output>
    ) -> OperationCall<Output> {
        let settle = begin(slot, onAttempt, onSuccess, onError, onSettled)
        return OperationCall(outcome, settle: settle)
    }

    /// - Returns: what shows the outcome.
    @MainActor
    private func begin<Output: Sendable>(
        _ slot: OperationSlot<Value>, _ onAttempt: (@MainActor () -> Void)?,
        _ onSuccess: (@MainActor (Output) -> Void)?,
        _ onError: (@MainActor (any Error) -> Void)?, _ onSettled: (@MainActor (Result<Output, any Error>) -> Void)?
    ) -> @MainActor (Result<Output, any Error>) -> Void {
        let record = reference.operations.record(of: slot.status)
        let number = record.log.begin()
        show(record.log, in: slot)
        onAttempt?()
        return { result in
            switch result {
            case .success(let output):
                record.log.settle(number, nil, pendingWhile: slot.pending)
                show(record.log, in: slot)
                onSuccess?(output)
            case .failure(let error):
                record.log.settle(number, error, pendingWhile: slot.pending)
                show(record.log, in: slot)
                onError?(error)
            }
            onSettled?(result)
        }
    }

    /// Performs an operation, shows in the value how it goes, and returns what it comes to.
    ///
    /// Cancelling the task cancels the operation, which then settles with `CancellationError`. For callbacks besides,
    /// use ``start(_:onAttempt:onSuccess:onError:onSettled:_:)`` and the `value` of the call.
    @MainActor
    @discardableResult
    public func perform<Output: Sendable>(
        _ slot: OperationSlot<Value>, _ work: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        try await start(slot, work).value
    }

    /// Clears the error and makes the status idle.
    ///
    /// Calls under way go on and have their callbacks, but write nothing more into the value.
    @MainActor
    public func reset(_ slot: OperationSlot<Value>) {
        let record = reference.operations.record(of: slot.status)
        record.log.reset()
        show(record.log, in: slot)
    }

    @MainActor
    private func show(_ log: OperationLog, in slot: OperationSlot<Value>) {
        reference.change(saves: false) { value in
            value[keyPath: slot.status] = log.status
            value[keyPath: slot.error] = log.error
        }
    }
}
