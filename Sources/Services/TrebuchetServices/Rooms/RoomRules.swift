public import Trebuchet

/// Authorization rules for rooms. The methods run on a reactor and must not block.
public protocol RoomRules: Sendable {
    /// Returns whether a principal may join a room.
    ///
    /// - Parameters:
    ///   - principal: the caller's principal; nil when the caller is not signed in.
    ///   - room: the type and the id of the room, as `chat-lobby`.
    func canJoin(_ principal: Principal?, _ room: String) -> Bool
    /// Returns whether a principal may see that a room exists and how many members it has. For `chat-`, without an id: whether
    /// the principal may list rooms of the type at all.
    func canList(_ principal: Principal?, _ room: String) -> Bool
    /// Returns whether a member may publish to a topic of the room. Default: true.
    func canPublish(_ principal: Principal?, _ topic: String, in room: String) -> Bool
    /// Returns the maximum number of members of a room. Default: the server's limit, which is the second argument.
    func memberLimit(of room: String, _ limit: Int) -> Int
}

extension RoomRules {
    /// Returns true: each member of a room may publish there.
    public func canPublish(_ principal: Principal?, _ topic: String, in room: String) -> Bool { true }
    /// Returns the server's limit.
    public func memberLimit(of room: String, _ limit: Int) -> Int { limit }
}

/// Allows all callers to join any room by name, and none to list rooms.
public struct OpenRooms: RoomRules {
    /// Creates the rules that a ``RoomHost`` uses by default.
    public init() {}

    /// Returns true, also for callers that are not signed in.
    public func canJoin(_ principal: Principal?, _ room: String) -> Bool { true }
    /// Returns false.
    public func canList(_ principal: Principal?, _ room: String) -> Bool { false }
}
