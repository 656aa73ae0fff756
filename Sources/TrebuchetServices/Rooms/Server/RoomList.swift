internal import Platform
internal import Trebuchet

/// A room, as it is listed.
public struct RoomSummary: Codable, Sendable, Equatable {
    /// `chat-lobby`: the type and the room's id.
    public let name: String
    /// How many are in it.
    public let members: Int

    /// - Parameters:
    ///   - name: the type and the room's id, `chat-lobby`.
    ///   - members: how many are in it.
    public init(name: String, members: Int) {
        self.name = name
        self.members = members
    }
}

/// `room-lists/<type>`: which rooms of a type there are, for those who may know.
@Trebuchet
distributed actor RoomList {
    static let prefix = "room-lists/"
    static let longestPage = 1_000

    private let host: RoomHost
    /// `chat-`, with which their names begin.
    private let prefix: String

    init(_ name: String, host: RoomHost, actorSystem: TrebuchetActorSystem) {
        prefix = Self.prefix(ofRoomsIn: name)
        self.host = host
        self.actorSystem = actorSystem
    }

    /// What the names of the rooms begin with that a list has, by the list's name.
    static func prefix(ofRoomsIn name: String) -> String { name.dropFirst(bytes: prefix.utf8.count) + "-" }

    /// Rooms that somebody is in, by the bytes of their names.
    ///
    /// - Parameters:
    ///   - after: the last name of the page before; nil for the first page.
    ///   - limit: at most, and at most 1,000; nil for as many.
    distributed func list(after: String?, limit: Int?) throws(RoomError) -> [RoomSummary] {
        let guest = try host.guest()
        try host.take(.joins, of: guest)
        let (rules, principal) = (host.rules, guest.connection.principal)
        guard rules.mayList(principal, prefix) else { throw .forbidden }
        let limit = min(max(0, limit ?? .max), Self.longestPage)
        // Those of type `chat-secret` begin like those of `chat`.
        return host.summaries(prefix: prefix, after: after, limit: limit) { rules.mayList(principal, $0) }
    }
}
