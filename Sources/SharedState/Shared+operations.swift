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
    /// - Until it settles, a call holds the value that it began with as a wrapper does, whatever the wrapper refers to by then. What it writes is not saved by the key.
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
        // The wrapper may be made to refer to another value meanwhile.
        let reference = reference
        let operations = reference.operations
        let record = operations.begin(slot.status, after: reference.value[keyPath: slot.error])
        let number = record.log.begin()
        reference.show(record.log, in: slot)
        onAttempt?()
        return { result in
            let error: (any Error)? = if case .failure(let error) = result { error } else { nil }
            record.log.settle(number, error, pendingWhile: slot.pending)
            reference.show(record.log, in: slot)
            operations.end(record, slot.status)
            switch result {
            case .success(let output): onSuccess?(output)
            case .failure(let error): onError?(error)
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
        let reference = reference
        reference.operations.record(of: slot.status)?.log.reset()
        reference.show(OperationLog(), in: slot)
    }
}

extension MutableReference {
    @MainActor
    fileprivate func show(_ log: OperationLog, in slot: OperationSlot<Value>) {
        change(saves: false) { value in
            value[keyPath: slot.status] = log.status
            value[keyPath: slot.error] = log.error
        }
    }
}
