internal import Platform
public import SharedState

/// The members of a room: the user and the other members.
///
///     @Shared(.trebuchetPresence(Schema.Rooms.chat, roomId: "lobby", initialPresence: ChatPresence(name: "Ada")))
///     var presence: RoomPresence<ChatPresence>
///
///     $presence.withLock { $0.user.isTyping = true }
public struct RoomPresence<Presence: Codable & Sendable & Equatable>: Sendable {
    /// The presence of this client. A change is visible here at once, and is sent when the room is joined.
    public var user: Presence
    /// The other members, in the order of their first presence. Members with a presence of another type are omitted.
    public var peers: IdentifiedArrayOf<Peer<Presence>>
    /// True until the members are known.
    public var isLoading: Bool
    /// True when this client is a member over the current connection.
    public var isConnected: Bool
    /// The current error of the room; nil when it works again.
    public var error: (any Error)?

    /// Creates a presence for previews and tests. The presence of a room comes from `.trebuchetPresence`.
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

    /// True when there is an error.
    public var isError: Bool { error != nil }
    /// The number of members, including the user.
    public var totalCount: Int { 1 + peers.count }
    /// True when the room has other members.
    public var hasPeers: Bool { !peers.isEmpty }
    /// The other users, each once, for any number of connections: the newest member of each principal, and all members that are
    /// not signed in.
    public var users: [Peer<Presence>] {
        var newest: [ByteText: Int] = [:]
        for (index, peer) in peers.enumerated() { if let user = peer.principal { newest[ByteText(user)] = index } }
        return peers.enumerated().filter { index, peer in peer.principal.map { newest[ByteText($0)] == index } ?? true }
            .map(\.element)
    }
    /// The other members as an array, in the same order.
    public var peersList: [Peer<Presence>] { peers.elements }
}

extension RoomPresence: Equatable {
    /// Errors are equal when their texts are.
    public static func == (a: Self, b: Self) -> Bool {
        a.user == b.user && a.peers == b.peers && a.isLoading == b.isLoading && a.isConnected == b.isConnected
            && isSameError(a.error, b.error)
    }
}

/// Another member of a room, with its presence.
public struct Peer<Presence: Codable & Sendable & Equatable>: Identifiable, Sendable, Equatable {
    /// The identifier of the membership; a member that leaves and joins again has another one.
    public let id: String
    /// The presence in the last received update.
    public var data: Presence
    /// The principal that is signed in over its connection, according to the server; nil for none.
    public let principal: String?

    /// Creates a member for previews and tests.
    public init(id: String, data: Presence, principal: String? = nil) {
        self.id = id
        self.data = data
        self.principal = principal
    }
}
