/// The destination for events of a topic.
struct TopicEventSink: Sendable {
    let rooms: JoinedRooms
    let room: String
    let topic: String

    /// Queues an event behind earlier ones.
    func publish(_ payload: some Encodable) -> Publication {
        do {
            let payload = try JSONValue(encoding: payload)
            guard let joined = rooms.room(room) else { throw RoomError.notJoined }
            return joined.publish(payload, to: topic)
        } catch {
            return Publication(topic: topic, failed: error)
        }
    }
}
