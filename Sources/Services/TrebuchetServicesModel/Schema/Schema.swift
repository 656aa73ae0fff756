/// The namespace in which an app declares its service data and their types:
///
///     extension Schema.Rooms {
///         static let chat = RoomKey<ChatPresence>(type: "chat")
///     }
///     extension Schema.Topics {
///         static let emoji = TopicKey<Emoji>(roomType: "chat", topic: "emoji")
///     }
public enum Schema {
    /// The namespace for room types.
    public enum Rooms {}
    /// The namespace for topics of rooms.
    public enum Topics {}
}

/// A collection of documents at the server, with the type that its documents decode to.
///
///     extension Schema {
///         static let todos = CollectionKey<Todo>("todos")
///     }
///
/// A document is the JSON of an element: an object with a member `id` that is a string or an integer.
public struct CollectionKey<Element: Codable & Identifiable & Equatable & Sendable>: Hashable, Sendable
where Element.ID: Codable & Sendable {
    /// The name of the collection: up to 128 bytes of letters, digits, `-`, `_` and `.`.
    public let name: String

    /// - Parameter name: up to 128 bytes of letters, digits, `-`, `_` and `.`. It is not validated here: the server refuses an
    ///   invalid name with `CollectionError.invalidName`.
    public init(_ name: String) { self.name = name }
}

/// The requirements on a member's presence, as one name: `struct Cursor: PresenceData`.
public typealias PresenceData = Codable & Sendable & Equatable

/// A type of room, with the type of its members' presence.
public struct RoomKey<Presence: Codable & Sendable & Equatable>: Hashable, Sendable {
    /// The part of room names before the id: `chat` in `chat-lobby`.
    public let type: String

    /// - Parameter type: the part of room names before the id.
    public init(type: String) { self.type = type }
}

/// A topic of a room type, with the type of its events.
public struct TopicKey<Payload: Codable & Sendable & Equatable>: Hashable, Sendable {
    /// The type of the rooms that have the topic; see ``RoomKey/type``.
    public let roomType: String
    /// The name of the topic within the room.
    public let topic: String

    /// - Parameters:
    ///   - roomType: the type of the rooms that have the topic.
    ///   - topic: the name of the topic within the room.
    public init(roomType: String, topic: String) {
        self.roomType = roomType
        self.topic = topic
    }
}
