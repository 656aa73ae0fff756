internal import TrebuchetServices

/// A document that the clients edit.
package struct Note: Codable, Identifiable, Equatable, Sendable {
    package var id: String
    package var text = ""
    /// The number of updates by its creator.
    package var revision = 0
    package var tags: [String] = []

    package init(id: String) { self.id = id }
}

/// The presence of a client.
package struct OfficePresence: Codable, Equatable, Sendable {
    package var name: String
    package var mood = ""

    package init(name: String, mood: String = "") {
        self.name = name
        self.mood = mood
    }
}

extension Schema {
    static let notes = CollectionKey<Note>("notes")
}

extension Schema.Rooms {
    static let office = RoomKey<OfficePresence>(type: "office")
}

extension Schema.Topics {
    static let talk = TopicKey<String>(roomType: "office", topic: "talk")
}
