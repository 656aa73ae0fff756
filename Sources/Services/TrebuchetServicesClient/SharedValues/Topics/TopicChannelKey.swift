internal import Platform
public import SharedState
internal import TrebuchetClient

/// The key of a `TopicChannel`; see ``SharedState/SharedReaderKey/trebuchetTopic(_:roomId:)``.
public struct TopicChannelKey<Payload: Codable & Sendable & Equatable>: SharedKey {
    /// The value of a wrapper with this key.
    public typealias Value = TopicChannel<Payload>

    /// Identifies the topic, its room and the server.
    public struct ID: Hashable, Sendable {
        let room: ByteText
        let topic: ByteText
        let backend: ObjectIdentifier?
    }

    private let room: String
    private let topic: String
    private let backend: TrebuchetBackend?

    init(_ key: TopicKey<Payload>, roomId: String) {
        room = ServiceNames.room(type: key.roomType, id: roomId)
        topic = key.topic
        backend = TrebuchetBackend.current
    }

    /// The identity: wrappers of one topic in one room at one backend share their events.
    public var id: ID {
        ID(room: ByteText(room), topic: ByteText(topic), backend: backend.map { ObjectIdentifier($0) })
    }

    /// The channel before it is connected.
    var initialValue: Value {
        var channel = TopicChannel<Payload>(
            isLoading: backend != nil, error: backend == nil ? RoomError.noBackend : nil)
        channel.sink = backend.map { TopicEventSink(rooms: $0.rooms, room: room, topic: topic) }
        return channel
    }

    /// Returns an empty channel; events come through the subscription.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        guard case .userInitiated = context else { return continuation.resume(returning: initialValue) }
        // A load has nothing newer than the subscription. The subscription sends its value again, which takes precedence.
        backend?.rooms.room(room)?.refresh()
        continuation.resumeReturningInitialValue()
    }

    /// Joins the room if this client is not a member, and sends the events of other members until the subscription ends.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        guard let backend else { return SharedSubscription() }
        let decoder = RoomDecoder<Payload>(.event, of: topic, in: room, for: backend.client)
        let (joined, number) = backend.rooms.addObserver(
            TopicObserver(topic, decoder, subscriber), presence: nil, to: room)
        return SharedSubscription { joined.remove(number) }
    }

    /// Does nothing: events are published, and received ones are local to this client.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) { continuation.resume() }
}

extension SharedReaderKey {
    /// A topic of a room. The client joins the room with the first wrapper, and leaves it after the last wrapper of its
    /// presence or topics.
    public static func trebuchetTopic<Payload>(
        _ key: TopicKey<Payload>, roomId: String
    ) -> Self where Self == TopicChannelKey<Payload>.Default {
        let key = TopicChannelKey(key, roomId: roomId)
        return TopicChannelKey.Default[key, default: key.initialValue]
    }

    /// A topic of a room, both given by name.
    public static func trebuchetTopic<Payload>(
        roomType: String, topic: String, roomId: String
    ) -> Self where Self == TopicChannelKey<Payload>.Default {
        trebuchetTopic(TopicKey(roomType: roomType, topic: topic), roomId: roomId)
    }

    /// Another name for ``trebuchetTopic(_:roomId:)``.
    public static func instantTopic<Payload>(
        _ key: TopicKey<Payload>, roomId: String
    ) -> Self where Self == TopicChannelKey<Payload>.Default { trebuchetTopic(key, roomId: roomId) }

    /// Another name for ``trebuchetTopic(roomType:topic:roomId:)``.
    public static func instantTopic<Payload>(
        roomType: String, topic: String, roomId: String
    ) -> Self where Self == TopicChannelKey<Payload>.Default {
        trebuchetTopic(TopicKey(roomType: roomType, topic: topic), roomId: roomId)
    }
}
