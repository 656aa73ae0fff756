internal import Platform
internal import SharedState

/// An event on its way to the server.
final class Publication: Sendable {
    let topic: String
    let payload: JSONValue
    /// Until when it may wait to be sent; nil for ever. Nanoseconds of the monotonic clock.
    let deadline: UInt64?
    let outcome: OperationOutcome<Void>

    init(topic: String, payload: JSONValue, within limit: Duration?) {
        self.topic = topic
        self.payload = payload
        deadline = limit.map { MonotonicClock.now &+ $0.nanoseconds }
        outcome = OperationOutcome()
    }

    /// One that has failed before it began.
    init(topic: String, failed error: any Error) {
        self.topic = topic
        payload = .null
        deadline = nil
        outcome = OperationOutcome(.failure(error))
    }

    /// The first outcome counts.
    func settle(_ result: Result<Void, any Error>) { outcome.tell(result) }

    var isSettled: Bool { outcome.told != nil }
}
