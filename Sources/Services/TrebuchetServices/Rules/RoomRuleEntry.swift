/// An entry of a rules file for the room types that match a pattern. Missing members do not override less precise entries.
struct RoomRuleEntry: Sendable {
    /// The pattern for the type.
    let pattern: NamePattern
    /// The pattern for room names: `chat-*` for the type `chat`.
    private let rooms: NamePattern
    var join: RoleSet?
    var list: RoleSet?
    var publish: RoleSet?
    var members: Int?

    init(_ pattern: NamePattern) {
        self.pattern = pattern
        rooms = NamePattern("\(pattern.text)-*")
    }

    /// Returns whether the entry applies to a room `<type>-<id>`; a name without an id is a type.
    func includes(_ room: String) -> Bool {
        room.utf8.contains(UInt8(ascii: "-")) ? rooms.matches(room) : pattern.matches(room)
    }

    /// Returns this entry, with members of `other` where this one has none.
    func over(_ other: RoomRuleEntry) -> RoomRuleEntry {
        var both = self
        both.join = join ?? other.join
        both.list = list ?? other.list
        both.publish = publish ?? other.publish
        both.members = members ?? other.members
        return both
    }
}
