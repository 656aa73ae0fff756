internal import Trebuchet

/// What an administrator does with the rooms of a server.
extension RoomHost {
    /// Nil when there is no such room.
    func members(of room: String) async -> [RoomMemberSummary]? {
        await self.room(room)?.whenLocal { $0.members() }
    }

    /// Sends somebody out; false when there is no such room or stay.
    func kick(_ stay: String, from room: String, for time: Duration) async -> Bool {
        await self.room(room)?.whenLocal { $0.kick(stay, for: time) } ?? false
    }
}

/// A member of a room, as it is listed.
package struct RoomMemberSummary: Codable, Sendable, Equatable {
    package let stay: String
    /// Nil for somebody who is not signed in.
    package let principal: String?
    /// Nil while it is away, and for a client of the server's own process.
    package let host: String?
    /// False within the grace.
    package let isConnected: Bool
    /// Nil when it shows nothing.
    package let presence: JSONValue?

    private enum CodingKeys: String, CodingKey { case stay = "session", principal, host, isConnected, presence }
}
