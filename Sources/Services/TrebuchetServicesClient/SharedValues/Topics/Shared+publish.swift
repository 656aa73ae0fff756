public import SharedState

extension OperationSlot {
    /// The status and error of publishing to a channel.
    static func publishing<Payload>() -> Self where Value == TopicChannel<Payload> {
        Self(status: \.publishStatus, error: \.error, pendingWhile: .anyCall)
    }
}

extension Shared {
    /// Publishes an event to the other members of the room.
    ///
    /// Events arrive in the order in which they were published. Until the room is joined they wait. When the connection breaks
    /// and the server may or may not have received an event, the call fails with `unknownOutcome`, and the event is not sent
    /// again.
    ///
    /// - Parameters:
    ///   - onAttempt: called with the payload before this method returns, because a client does not receive its own events.
    ///   - onSuccess: called when the server has published the event.
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
        // Before any suspension, so that events keep the order of calls.
        let publication =
            wrappedValue.sink?.publish(payload) ?? Publication(topic: "", failed: RoomError.noBackend)
        return start(
            .publishing(), onAttempt: { onAttempt?(payload) }, onSuccess: { onSuccess?() }, onError: onError,
            onSettled: onSettled, until: publication.outcome)
    }

    /// Starts to publish an event, for synchronous code; see ``publish(_:onAttempt:onSuccess:onError:onSettled:)``.
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

    /// Publishes an event and returns when the server has published it. Cancelling the task withdraws the event, unless it has
    /// been sent.
    @MainActor
    public func publish<Payload>(_ payload: Payload) async throws where Value == TopicChannel<Payload> {
        try await publish(payload, onAttempt: nil).value
    }

    /// Clears the error and makes the status idle. Publishes in progress continue and call their callbacks, but do not change
    /// the value any more.
    @MainActor
    public func reset<Payload>() where Value == TopicChannel<Payload> { reset(.publishing()) }
}
