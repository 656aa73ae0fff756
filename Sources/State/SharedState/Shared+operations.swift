extension Shared {
    /// Starts an operation, and shows its state in the value.
    ///
    ///     func rename(to name: String, onError: (@MainActor (any Error) -> Void)? = nil) {
    ///         start(.rename, onError: onError) { try await server.rename(name) }
    ///     }
    ///
    /// - When this returns, the status is pending and `onAttempt` was called. Later the outcome is written to the
    ///   value; then one of `onSuccess` and `onError` is called, and last `onSettled`. All run on the main actor.
    /// - The callbacks of each call come exactly once, regardless of wrappers, later calls or a reset.
    /// - Only the newest call writes status and error. The error stays until a success, or until ``reset(_:)``.
    /// - Until it settles, a call retains the value that it began with, like a wrapper, even if the wrapper refers to
    ///   another value by then. The key does not save the changes of an operation.
    ///
    /// - Parameter work: Runs in a separate task.
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
        let settle = beginOperation(slot, onAttempt, onSuccess, onError, onSettled)
        return OperationCall(work, settle: settle)
    }

    /// Starts an operation without its own task, and shows its state in the value, like ``start``.
    ///
    /// Such operations settle in the order of their reported outcomes.
    ///
    /// - Parameter outcome: reported at the end of the operation. Used by one call only.
    @MainActor
    package func start<Output: Sendable>(
        _ slot: OperationSlot<Value>,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (Output) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Output, any Error>) -> Void)? = nil,
        until outcome: OperationOutcome<Output>
    ) -> OperationCall<Output> {
        let settle = beginOperation(slot, onAttempt, onSuccess, onError, onSettled)
        return OperationCall(outcome, settle: settle)
    }

    /// Begins a call.
    ///
    /// - Returns: a closure that shows the outcome.
    @MainActor
    private func beginOperation<Output: Sendable>(
        _ slot: OperationSlot<Value>, _ onAttempt: (@MainActor () -> Void)?,
        _ onSuccess: (@MainActor (Output) -> Void)?,
        _ onError: (@MainActor (any Error) -> Void)?, _ onSettled: (@MainActor (Result<Output, any Error>) -> Void)?
    ) -> @MainActor (Result<Output, any Error>) -> Void {
        // The wrapper may refer to another value by then.
        let reference = reference
        let operations = reference.operations
        let record = operations.startCall(slot.status, after: reference.value[keyPath: slot.error])
        let number = record.log.startCall()
        reference.writeState(record.log, in: slot)
        onAttempt?()
        return { result in
            let error: (any Error)? = if case .failure(let error) = result { error } else { nil }
            record.log.settle(number, error, pendingWhile: slot.pending)
            reference.writeState(record.log, in: slot)
            operations.endCall(record, slot.status)
            switch result {
            case .success(let output): onSuccess?(output)
            case .failure(let error): onError?(error)
            }
            onSettled?(result)
        }
    }

    /// Performs an operation, shows its state in the value, and returns its result.
    ///
    /// Cancellation of the task cancels the operation, which then settles with `CancellationError`. For additional
    /// callbacks, use ``start(_:onAttempt:onSuccess:onError:onSettled:_:)`` and the `value` of the call.
    @MainActor
    @discardableResult
    public func perform<Output: Sendable>(
        _ slot: OperationSlot<Value>, _ work: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        try await start(slot, work).value
    }

    /// Clears the error and makes the status idle.
    ///
    /// Running calls continue and have their callbacks, but do not write to the value any more.
    @MainActor
    public func reset(_ slot: OperationSlot<Value>) {
        let reference = reference
        reference.operations.record(of: slot.status)?.log.reset()
        reference.writeState(OperationLog(), in: slot)
    }
}

extension MutableReference {
    @MainActor
    fileprivate func writeState(_ log: OperationLog, in slot: OperationSlot<Value>) {
        change(saves: false) { value in
            value[keyPath: slot.status] = log.status
            value[keyPath: slot.error] = log.error
        }
    }
}
