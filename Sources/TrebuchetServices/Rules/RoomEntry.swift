/// What a file of rules says of the rooms of a type. What it leaves out, it says nothing of.
struct RoomEntry: Sendable {
    /// Of the type.
    let pattern: NamePattern
    /// Of the rooms' names: `chat-*` for `chat`.
    private let rooms: NamePattern
    var join: RoleSet?
    var list: RoleSet?
    var publish: RoleSet?
    var members: Int?

    init(_ pattern: NamePattern) {
        self.pattern = pattern
        rooms = NamePattern("\(pattern.text)-*")
    }

    /// Whether it speaks of a room, whose name is `<type>-<id>`; one without an id is of the type that it is called.
    func includes(_ room: String) -> Bool {
        room.utf8.contains(UInt8(ascii: "-")) ? rooms.matches(room) : pattern.matches(room)
    }

    /// Everything that it says, and what the other says of the rest.
    func over(_ other: RoomEntry) -> RoomEntry {
        var both = self
        both.join = join ?? other.join
        both.list = list ?? other.list
        both.publish = publish ?? other.publish
        both.members = members ?? other.members
        return both
    }
}
