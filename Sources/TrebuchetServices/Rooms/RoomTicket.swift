/// What a client gets when it joins a room.
struct RoomTicket: Codable, Sendable, Equatable {
    /// How the others see the client.
    let session: String
    /// Shown when joining again, so that the session goes on. A secret.
    let token: String
    /// Another one when the room has been made anew since, and its events are counted from 1 again.
    var epoch = ""
}
