/// One event of a room, as it goes over the wire.
struct RoomEvent: Codable, Sendable, Equatable {
    /// Counted from 1, over all topics of the room.
    let number: Int
    let topic: String
    /// The session that published it.
    let peer: String
    let payload: JSONValue
}
