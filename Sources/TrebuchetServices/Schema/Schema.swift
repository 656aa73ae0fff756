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
