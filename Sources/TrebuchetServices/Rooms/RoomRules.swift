public import Trebuchet

/// Who may do what with rooms. Asked on a reactor: an answer must not block.
public protocol RoomRules: Sendable {
    /// - Parameters:
    ///   - principal: who asks; nil for somebody who is not signed in.
    ///   - room: `chat-lobby`: the type and the id.
    func mayJoin(_ principal: Principal?, _ room: String) -> Bool
    /// Whether somebody may see which rooms there are, and how many are in them.
    func mayList(_ principal: Principal?) -> Bool
}

/// Everybody joins every room whose name they know, and nobody lists them.
public struct OpenRooms: RoomRules {
    public init() {}

    public func mayJoin(_ principal: Principal?, _ room: String) -> Bool { true }
    public func mayList(_ principal: Principal?) -> Bool { false }
}
