/// A topic of a kind of room, and what is published there.
public struct TopicKey<Payload: Codable & Sendable & Equatable>: Hashable, Sendable {
    public let roomType: String
    public let topic: String

    public init(roomType: String, topic: String) {
        self.roomType = roomType
        self.topic = topic
    }
}
