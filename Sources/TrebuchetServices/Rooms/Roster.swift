/// What the members of a room show, in the order in which they began to: the state that clients observe.
struct Roster: Codable, Sendable, Equatable {
    struct Member: Codable, Sendable, Equatable {
        /// The session.
        let id: String
        /// Grows with each change, over all members: who has seen it need not look again.
        var version: Int
        var data: JSONValue
    }

    private(set) var members: [Member] = []
    private var version = 0

    /// What a session shows; nil when nothing.
    subscript(session: String) -> JSONValue? { members.first { $0.id == session }?.data }

    /// Shows this for a session; nil takes it away.
    mutating func set(_ data: JSONValue?, of session: String) {
        let index = members.firstIndex { $0.id == session }
        guard let data else {
            if let index { members.remove(at: index) }
            return
        }
        version += 1
        if let index {
            members[index].version = version
            members[index].data = data
        } else {
            members.append(Member(id: session, version: version, data: data))
        }
    }
}
