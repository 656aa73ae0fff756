/// Where an app names what it keeps in the services, with its types:
///
///     extension Schema.Rooms {
///         static let chat = RoomKey<ChatPresence>(type: "chat")
///     }
///     extension Schema.Topics {
///         static let emoji = TopicKey<Emoji>(roomType: "chat", topic: "emoji")
///     }
public enum Schema {
    /// The kinds of rooms.
    public enum Rooms {}
    /// The topics of rooms.
    public enum Topics {}
}

/// A collection of documents at the server, and the type that an app reads them as.
///
///     extension Schema {
///         static let todos = CollectionKey<Todo>("todos")
///     }
///
/// A document is the JSON of an element: an object with a member `id`, a text or a whole number.
public struct CollectionKey<Element: Codable & Identifiable & Equatable & Sendable>: Hashable, Sendable
where Element.ID: Codable & Sendable {
    /// Up to 128 bytes of letters, digits, `-`, `_` and `.`.
    public let name: String

    public init(_ name: String) { self.name = name }
}

/// A kind of room, and what each member shows the others there.
public struct RoomKey<Presence: Codable & Sendable & Equatable>: Hashable, Sendable {
    public let type: String

    public init(type: String) { self.type = type }
}

/// A topic of a kind of room, and what is published there.
public struct TopicKey<Payload: Codable & Sendable & Equatable>: Hashable, Sendable {
    public let roomType: String
    public let topic: String

    public init(roomType: String, topic: String) {
        self.roomType = roomType
        self.topic = topic
    }
}
