/// The response to a join.
package struct RoomTicket: Codable, Sendable, Equatable {
    /// The identifier under which other members see the client.
    package let membershipID: String
    /// A secret that the client sends when it joins again, to resume its membership.
    package let token: String
    /// The position in the room's events at the join. The client receives all later events, even if it starts to observe them
    /// later.
    package let events: EventPosition

    package init(membershipID: String, token: String, events: EventPosition) {
        self.membershipID = membershipID
        self.token = token
        self.events = events
    }

    private enum CodingKeys: String, CodingKey { case membershipID = "session", token, events }
}

/// A room, as listed.
public struct RoomSummary: Codable, Sendable, Equatable {
    /// The type and the id of the room, as `chat-lobby`.
    public let name: String
    /// The number of its members.
    public let members: Int

    /// - Parameters:
    ///   - name: the type and the id of the room, as `chat-lobby`.
    ///   - members: the number of its members.
    public init(name: String, members: Int) {
        self.name = name
        self.members = members
    }
}
