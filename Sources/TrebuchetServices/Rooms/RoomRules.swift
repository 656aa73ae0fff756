public import Trebuchet

/// Who may do what with rooms. Asked on a reactor: an answer must not block.
public protocol RoomRules: Sendable {
    /// - Parameters:
    ///   - principal: who asks; nil for somebody who is not signed in.
    ///   - room: `chat-lobby`: the type and the id.
    func mayJoin(_ principal: Principal?, _ room: String) -> Bool
    /// Whether somebody may see that a room is there, and how many are in it. Of `chat-`, without an id, whether somebody may
    /// ask for the rooms of the type at all.
    func mayList(_ principal: Principal?, _ room: String) -> Bool
    /// Whether a member may publish to a topic of the room. Default: true.
    func mayPublish(_ principal: Principal?, _ topic: String, in room: String) -> Bool
    /// How many members a room may have. Default: the server's limit, which is given.
    func memberLimit(of room: String, _ limit: Int) -> Int
}

extension RoomRules {
    /// True: who is in a room publishes there.
    public func mayPublish(_ principal: Principal?, _ topic: String, in room: String) -> Bool { true }
    /// The server's limit, as it is given.
    public func memberLimit(of room: String, _ limit: Int) -> Int { limit }
}

/// Everybody joins every room whose name they know, and nobody lists them.
public struct OpenRooms: RoomRules {
    /// The rules of a ``RoomHost`` that is given no others.
    public init() {}

    /// True, also for somebody who is not signed in.
    public func mayJoin(_ principal: Principal?, _ room: String) -> Bool { true }
    /// False.
    public func mayList(_ principal: Principal?, _ room: String) -> Bool { false }
}
