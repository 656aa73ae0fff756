internal import SharedState
internal import Synchronization

/// Renders a topic into a `TopicChannel`.
final class TopicObserver<Payload: Codable & Sendable & Equatable>: RoomObserver {
    let topic: String?
    private let subscriber: SharedSubscriber<TopicChannel<Payload>>
    private let decoder: RoomDecoder<Payload>
    /// The error that this feed has set, because it must not clear the errors of publishes.
    private let reportedError = Mutex<(any Error)?>(nil)

    init(_ topic: String, _ decoder: RoomDecoder<Payload>, _ subscriber: SharedSubscriber<TopicChannel<Payload>>) {
        self.topic = topic
        self.decoder = decoder
        self.subscriber = subscriber
    }

    func applyStatus(_ status: RoomStatus) {
        let before = reportedError.withLock { shown in
            defer { shown = status.error }
            return shown
        }
        let isConnected = status.isJoined && status.hasEvents
        subscriber.update { channel in
            channel.isConnected = isConnected
            if isConnected || status.error != nil { channel.isLoading = false }
            guard !isSameError(before, status.error) else { return }
            if let error = status.error {
                channel.error = error
            } else if isSameError(channel.error, before) {
                channel.error = nil
            }
        }
    }

    /// Adds an event; one of another type is omitted and reported.
    func receive(_ event: RoomEvent) {
        guard let payload = try? event.payload.value(), let data = decoder.decode(payload, from: event.peer) else {
            return
        }
        let received = TopicEvent(peerId: event.peer, data: data)
        subscriber.update { $0.addEvent(received) }
    }

    func missed(_ count: Int) {
        subscriber.update {
            $0.missedCount = count > .max - $0.missedCount ? .max : $0.missedCount + count
            $0.error = RoomError.eventsMissed(count: count)
        }
    }

    func restarted() { subscriber.update { $0.restarts += 1 } }
}
