internal import TrebuchetServices

/// A document that the clients edit.
package struct Note: Codable, Identifiable, Equatable, Sendable {
    package var id: String
    package var text = ""
    /// How often its creator has updated it.
    package var revision = 0
    package var tags: [String] = []

    package init(id: String) { self.id = id }
}

/// What a client shows the others.
package struct Visitor: Codable, Equatable, Sendable {
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
    static let office = RoomKey<Visitor>(type: "office")
}

extension Schema.Topics {
    static let talk = TopicKey<String>(roomType: "office", topic: "talk")
}
