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

    /// - Parameter name: up to 128 bytes of letters, digits, `-`, `_` and `.`. It is not looked at here: the server refuses
    ///   another with `CollectionError.invalidName`.
    public init(_ name: String) { self.name = name }
}

/// What a member of a room can show the others, as a name for it: `struct Cursor: PresenceData`.
public typealias PresenceData = Codable & Sendable & Equatable

/// A kind of room, and what each member shows the others there.
public struct RoomKey<Presence: Codable & Sendable & Equatable>: Hashable, Sendable {
    /// What the rooms of this kind are called at the server, before their ids: `chat` for `chat-lobby`.
    public let type: String

    /// - Parameter type: what the rooms of this kind are called, before their ids.
    public init(type: String) { self.type = type }
}

/// A topic of a kind of room, and what is published there.
public struct TopicKey<Payload: Codable & Sendable & Equatable>: Hashable, Sendable {
    /// The kind of rooms that have the topic, as in ``RoomKey/type``.
    public let roomType: String
    /// The name of the topic within the room.
    public let topic: String

    /// - Parameters:
    ///   - roomType: the kind of rooms that have the topic.
    ///   - topic: its name there.
    public init(roomType: String, topic: String) {
        self.roomType = roomType
        self.topic = topic
    }
}
