public import SharedState

extension OperationSlot {
    /// Where a channel shows how publishing goes.
    static func publishing<Payload>() -> Self where Value == TopicChannel<Payload> {
        Self(status: \.publishStatus, error: \.error, pendingWhile: .anyCall)
    }
}

extension Shared {
    /// Publishes an event to the others in the room.
    ///
    /// Events arrive in the order in which they were published. Until the room is joined they wait; one that may or may not
    /// have reached the server when the connection broke fails with `unknownOutcome` and is not sent again.
    ///
    /// - Parameters:
    ///   - onAttempt: called before this returns, with the payload: one's own events do not come back.
    ///   - onSuccess: called when the server has handed the event on.
    ///   - onSettled: called last, after one of `onSuccess` and `onError`.
    /// - Returns: the call; its `value` waits for the outcome.
    @MainActor
    @discardableResult
    public func publish<Payload>(
        _ payload: Payload,
        onAttempt: (@MainActor (Payload) -> Void)? = nil,
        onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == TopicChannel<Payload> {
        // Before anything waits: so events keep the order of the calls.
        let publication =
            wrappedValue.line?.publish(payload) ?? Publication(topic: "", failed: RoomError.noBackend)
        return start(
            .publishing(), onAttempt: { onAttempt?(payload) }, onSuccess: { onSuccess?() }, onError: onError,
            onSettled: onSettled, until: publication.outcome)
    }

    /// Begins to publish an event, for code that does not wait; see ``publish(_:onAttempt:onSuccess:onError:onSettled:)``.
    @MainActor
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func publish<Payload>(_ payload: Payload) -> OperationCall<Void> where Value == TopicChannel<Payload> {
        publish(payload, onAttempt: nil)
    }

    /// Publishes an event and returns when the server has handed it on. Cancelling the task takes it back, unless it has
    /// been sent.
    @MainActor
    public func publish<Payload>(_ payload: Payload) async throws where Value == TopicChannel<Payload> {
        try await publish(payload, onAttempt: nil).value
    }

    /// Clears the error and makes the status idle. Publishes under way go on and have their callbacks, but write nothing
    /// more into the value.
    @MainActor
    public func reset<Payload>() where Value == TopicChannel<Payload> { reset(.publishing()) }
}
