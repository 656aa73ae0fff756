internal import Platform
internal import Relays

/// An event on its way to the server.
final class Publication: Sendable {
    let topic: String
    let payload: JSONValue
    /// Until when it may wait to be sent; nil for ever. Nanoseconds of the monotonic clock.
    let deadline: UInt64?
    private let outcome: StateRelay<Result<Void, any Error>?>

    init(topic: String, payload: JSONValue, within limit: Duration?) {
        self.topic = topic
        self.payload = payload
        deadline = limit.map { MonotonicClock.now &+ $0.nanoseconds }
        outcome = StateRelay(nil)
    }

    /// One that has failed before it began.
    init(topic: String, failed error: any Error) {
        self.topic = topic
        payload = .null
        deadline = nil
        outcome = StateRelay(.failure(error))
    }

    /// The first outcome counts.
    func settle(_ result: Result<Void, any Error>) { outcome.update { if $0 == nil { $0 = result } } }

    var isSettled: Bool { outcome.currentValue != nil }

    /// Returns when the server has it; of several on the main actor, so that they do so in their order. A task that is cancelled takes it back, unless it has been sent.
    @MainActor
    func wait() async throws {
        for await case let result? in outcome.stream { return try result.get() }
        settle(.failure(CancellationError()))
        throw CancellationError()
    }
}
