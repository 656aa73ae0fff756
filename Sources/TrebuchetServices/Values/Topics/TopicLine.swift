/// Where the events of a topic go.
struct TopicLine: Sendable {
    let rooms: JoinedRooms
    let room: String
    let topic: String

    /// Takes an event to be sent after those before it.
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
