/// Another member of a room, and what it shows.
public struct Peer<Presence: Codable & Sendable & Equatable>: Identifiable, Sendable, Equatable {
    /// Its session: another one when it has left and joined again.
    public let id: String
    public var data: Presence

    public init(id: String, data: Presence) {
        self.id = id
        self.data = data
    }
}
