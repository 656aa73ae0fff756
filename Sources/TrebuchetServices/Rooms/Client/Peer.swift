/// Another member of a room, and what it shows.
public struct Peer<Presence: Codable & Sendable & Equatable>: Identifiable, Sendable, Equatable {
    /// Its session: another one when it has left and joined again.
    public let id: String
    public var data: Presence
    /// The id of who is signed in over its connection, as the server knows it; nil for nobody.
    public let principal: String?

    public init(id: String, data: Presence, principal: String? = nil) {
        self.id = id
        self.data = data
        self.principal = principal
    }
}
