internal import Platform
internal import Trebuchet

/// An actor `room-lists/<type>` that lists the rooms of a type, for authorized callers.
@Trebuchet
distributed actor RoomList: RoomListInterface {
    static let prefix = ServiceNames.roomLists
    static let maximumPageLength = 1_000

    private let host: RoomHost
    /// The beginning of the names of its rooms, as `chat-`.
    private let prefix: String
    /// The caller whose rate the activation uses, until the list is used.
    private var activator: ActivationOwner?

    init(_ name: String, host: RoomHost, activator: ActivationOwner? = nil, actorSystem: TrebuchetActorSystem) {
        prefix = Self.prefix(ofRoomsIn: name)
        self.host = host
        self.activator = activator
        self.actorSystem = actorSystem
    }

    /// Returns the beginning of the room names that the list with this name has.
    static func prefix(ofRoomsIn name: String) -> String { name.dropFirst(bytes: prefix.utf8.count) + "-" }

    /// Returns rooms that have members, sorted by the bytes of their names.
    ///
    /// - Parameters:
    ///   - after: the last name of the previous page; nil for the first page.
    ///   - limit: the maximum number of rooms, at most 1,000; nil for 1,000.
    distributed func list(after: String?, limit: Int?) throws(RoomError) -> [RoomSummary] {
        let client = try host.callingClient()
        try host.consumeRate(.joins, of: client)
        let (rules, principal) = (host.rules, client.connection.principal)
        guard rules.canList(principal, prefix) else { throw .forbidden }
        if let activator = activator.take() { host.giveBackActivation(activator) }
        let limit = min(max(0, limit ?? .max), Self.maximumPageLength)
        // Rooms of the type `chat-secret` have the prefix `chat-` too, so the rules decide for each room.
        return host.summaries(prefix: prefix, after: after, limit: limit) { rules.canList(principal, $0) }
    }
}
