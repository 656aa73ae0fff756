internal import Platform
public import SharedState

/// Who is in a room: the user, and the others.
///
///     @Shared(.trebuchetPresence(Schema.Rooms.chat, roomId: "lobby", initialPresence: ChatPresence(name: "Ada")))
///     var presence: RoomPresence<ChatPresence>
///
///     $presence.withLock { $0.user.isTyping = true }
public struct RoomPresence<Presence: Codable & Sendable & Equatable>: Sendable {
    /// What the others see of this client. A change is shown at once, and sent when the room is joined.
    public var user: Presence
    /// The others, in the order in which they came. Members whose presence is of another type are left out.
    public var peers: IdentifiedArrayOf<Peer<Presence>>
    /// Whether it is not known yet who is there.
    public var isLoading: Bool
    /// Whether the others see this client, over the present connection.
    public var isConnected: Bool
    /// What is wrong with the room; nil when it works again.
    public var error: (any Error)?

    /// A presence as it stands; for previews and tests. Those of a room come through `.trebuchetPresence`.
    public init(
        user: Presence, peers: IdentifiedArrayOf<Peer<Presence>> = [], isLoading: Bool = true,
        isConnected: Bool = false, error: (any Error)? = nil
    ) {
        self.user = user
        self.peers = peers
        self.isLoading = isLoading
        self.isConnected = isConnected
        self.error = error
    }

    /// Whether something is wrong with the room.
    public var isError: Bool { error != nil }
    /// The user and the others.
    public var totalCount: Int { 1 + peers.count }
    /// Whether anybody else is in the room.
    public var hasPeers: Bool { !peers.isEmpty }
    /// The others, each user once, however many connections show it: of those who are signed in the newest, and all who are not.
    public var users: [Peer<Presence>] {
        var newest: [ByteText: Int] = [:]
        for (index, peer) in peers.enumerated() { if let user = peer.principal { newest[ByteText(user)] = index } }
        return peers.enumerated().filter { index, peer in peer.principal.map { newest[ByteText($0)] == index } ?? true }
            .map(\.element)
    }
    /// The others as an array, in the order in which they came.
    public var peersList: [Peer<Presence>] { peers.elements }
}

extension RoomPresence: Equatable {
    /// Errors are equal when they say the same.
    public static func == (a: Self, b: Self) -> Bool {
        a.user == b.user && a.peers == b.peers && a.isLoading == b.isLoading && a.isConnected == b.isConnected
            && isSameError(a.error, b.error)
    }
}

/// Another member of a room, and what it shows.
public struct Peer<Presence: Codable & Sendable & Equatable>: Identifiable, Sendable, Equatable {
    /// Its stay: another one when it has left and joined again.
    public let id: String
    /// What it shows, as of the last update that has come.
    public var data: Presence
    /// The id of who is signed in over its connection, as the server knows it; nil for nobody.
    public let principal: String?

    /// A member as it stands; for previews and tests.
    public init(id: String, data: Presence, principal: String? = nil) {
        self.id = id
        self.data = data
        self.principal = principal
    }
}
