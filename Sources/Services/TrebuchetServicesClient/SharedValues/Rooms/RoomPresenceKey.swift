internal import Platform
public import SharedState
internal import TrebuchetClient

/// The key of a `RoomPresence`; see ``SharedState/SharedReaderKey/trebuchetPresence(_:roomId:initialPresence:)``.
public struct RoomPresenceKey<Presence: Codable & Sendable & Equatable>: SharedKey {
    /// The value of a wrapper with this key.
    public typealias Value = RoomPresence<Presence>

    /// Identifies the room and the server.
    public struct ID: Hashable, Sendable {
        let room: ByteText
        let backend: ObjectIdentifier?
    }

    private let room: String
    private let backend: TrebuchetBackend?

    init(_ key: RoomKey<Presence>, roomId: String) {
        room = ServiceNames.room(type: key.type, id: roomId)
        backend = TrebuchetBackend.current
    }

    /// The identity: wrappers of one room at one backend share one membership.
    public var id: ID { ID(room: ByteText(room), backend: backend.map { ObjectIdentifier($0) }) }

    /// Returns the initial presence; the room's state comes through the subscription.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        // A load has nothing newer than the subscription. The subscription sends its value again, which takes precedence.
        if case .userInitiated = context { backend?.rooms.room(room)?.refresh() }
        continuation.resumeReturningInitialValue()
    }

    /// Joins the room, and sends its members until the subscription ends. Without a backend it sends ``RoomError/noBackend``.
    public func subscribe(context: LoadContext<Value>, subscriber: SharedSubscriber<Value>) -> SharedSubscription {
        guard let backend else {
            subscriber.update { presence in
                presence.isLoading = false
                presence.error = RoomError.noBackend
            }
            return SharedSubscription()
        }
        let presence = context.initialValue.flatMap { try? JSONValue(encoding: $0.user) } ?? .object([:])
        let decoder = RoomDecoder<Presence>(.state, of: "presence", in: room, for: backend.client)
        let (joined, number) = backend.rooms.addObserver(
            PresenceObserver(decoder, subscriber), presence: presence, to: room)
        return SharedSubscription { joined.remove(number) }
    }

    /// Completes when the server has the presence. Without a connection it waits for one.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        guard let backend else { return continuation.resume(throwing: RoomError.noBackend) }
        guard let joined = backend.rooms.room(room) else { return continuation.resume(throwing: RoomError.left) }
        do {
            joined.setPresence(try JSONValue(encoding: value.user), continuation)
        } catch {
            continuation.resume(throwing: error)
        }
    }
}

extension SharedReaderKey {
    /// The presences of a room. The client joins the room with the first wrapper, and leaves it after the last wrapper of its
    /// presence or topics.
    ///
    /// - Parameter initialPresence: the user's first presence; the one of the first wrapper counts.
    public static func trebuchetPresence<Presence>(
        _ key: RoomKey<Presence>, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        RoomPresenceKey.Default[RoomPresenceKey(key, roomId: roomId), default: RoomPresence(user: initialPresence())]
    }

    /// The presences of a room whose type is given by name.
    public static func trebuchetPresence<Presence>(
        roomType: String, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        trebuchetPresence(RoomKey(type: roomType), roomId: roomId, initialPresence: initialPresence())
    }

    /// Another name for ``trebuchetPresence(_:roomId:initialPresence:)``.
    public static func instantPresence<Presence>(
        _ key: RoomKey<Presence>, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        trebuchetPresence(key, roomId: roomId, initialPresence: initialPresence())
    }

    /// Another name for ``trebuchetPresence(roomType:roomId:initialPresence:)``.
    public static func instantPresence<Presence>(
        roomType: String, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        trebuchetPresence(RoomKey(type: roomType), roomId: roomId, initialPresence: initialPresence())
    }
}

extension Shared {
    /// Changes the user's presence, and returns when the server has it; throws when the server refuses it. Without a connection
    /// it waits for one.
    public func update<Presence>(
        isolation: isolated (any Actor)? = #isolation, _ change: (inout Presence) -> Void
    ) async throws where Value == RoomPresence<Presence> {
        withLock { change(&$0.user) }
        try await save()
    }
}
