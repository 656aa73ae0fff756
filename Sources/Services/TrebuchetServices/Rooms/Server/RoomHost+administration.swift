internal import Trebuchet

/// Room operations for administrators.
extension RoomHost {
    /// Returns the members of a room; nil when there is no such room.
    func members(of room: String) async -> [RoomMemberSummary]? {
        await self.room(room)?.whenLocal { $0.members() }
    }

    /// Removes a member from a room; returns false when there is no such room or membership.
    func kick(_ membershipID: String, from room: String, for time: Duration) async -> Bool {
        await self.room(room)?.whenLocal { $0.kick(membershipID, for: time) } ?? false
    }
}

/// A member of a room, as listed.
package struct RoomMemberSummary: Codable, Sendable, Equatable {
    package let membershipID: String
    /// Nil for a member that is not signed in.
    package let principal: String?
    /// Nil during the grace period, and for a client in the server's process.
    package let host: String?
    /// False during the grace period.
    package let isConnected: Bool
    /// Nil without a presence.
    let storedPresence: StoredJSON?
    package var presence: JSONValue? { storedPresence?.value }

    private enum CodingKeys: String, CodingKey {
        case membershipID = "session", principal, host, isConnected, storedPresence = "presence"
    }
}
