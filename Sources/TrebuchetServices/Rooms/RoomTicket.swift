/// What a client gets when it joins a room.
struct RoomTicket: Codable, Sendable, Equatable {
    /// How the others see the client.
    let session: String
    /// Shown when joining again, so that the session goes on. A secret.
    let token: String
    /// Where the events of the room are: what comes after it is for the client, whenever it begins to observe them. Nil from
    /// servers that do not tell.
    var events: EventPosition?
}
