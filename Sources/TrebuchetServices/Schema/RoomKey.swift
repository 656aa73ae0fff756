/// A kind of room, and what each member shows the others there.
public struct RoomKey<Presence: Codable & Sendable & Equatable>: Hashable, Sendable {
    public let type: String

    public init(type: String) { self.type = type }
}
