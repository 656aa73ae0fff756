internal import Platform
internal import SharedState

/// An event that is queued for the server.
final class Publication: Sendable {
    let topic: String
    let payload: JSONValue
    /// The time until which the event may wait, in nanoseconds of the monotonic clock; nil for no limit.
    let deadline: UInt64?
    let outcome: OperationOutcome<Void>

    init(topic: String, payload: JSONValue, within limit: Duration?) {
        self.topic = topic
        self.payload = payload
        deadline = limit.map { MonotonicClock.now &+ $0.nanoseconds }
        outcome = OperationOutcome()
    }

    /// Creates a publication that has already failed.
    init(topic: String, failed error: any Error) {
        self.topic = topic
        payload = .null
        deadline = nil
        outcome = OperationOutcome(.failure(error))
    }

    /// Settles the publication; only the first outcome counts.
    func settle(_ result: Result<Void, any Error>) { outcome.report(result) }

    var isSettled: Bool { outcome.result != nil }
}
