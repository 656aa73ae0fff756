internal import Platform
public import SharedState
internal import Trebuchet

/// Where a `RoomPresence` comes from; see ``SharedState/SharedReaderKey/trebuchetPresence(_:roomId:initialPresence:)``.
public struct RoomPresenceKey<Presence: Codable & Sendable & Equatable>: SharedKey {
    /// What a wrapper of this key holds.
    public typealias Value = RoomPresence<Presence>

    /// The room, and the server it is at.
    public struct ID: Hashable, Sendable {
        let room: ByteText
        let backend: ObjectIdentifier?
    }

    private let room: String
    private let backend: TrebuchetBackend?

    init(_ key: RoomKey<Presence>, roomId: String) {
        room = RoomName.of(type: key.type, id: roomId)
        backend = TrebuchetBackend.current
    }

    /// Wrappers of one room at one backend are one member of it.
    public var id: ID { ID(room: ByteText(room), backend: backend.map { ObjectIdentifier($0) }) }

    /// Begins with the initial presence; what a room is comes through the subscription.
    public func load(context: LoadContext<Value>, continuation: LoadContinuation<Value>) {
        // Nothing is newer than what the subscription has shown: it shows that again, and what it shows goes before.
        if case .userInitiated = context { backend?.rooms.room(room)?.refresh() }
        continuation.resumeReturningInitialValue()
    }

    /// Joins the room, and shows its members until the subscription ends. Without a backend it shows ``RoomError/noBackend``.
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
        let (joined, number) = backend.rooms.add(PresenceFeed(decoder, subscriber), presence: presence, to: room)
        return SharedSubscription { joined.remove(number) }
    }

    /// Done when the server shows it. Without a connection it waits for one.
    public func save(_ value: Value, context: SaveContext, continuation: SaveContinuation) {
        guard let backend else { return continuation.resume(throwing: RoomError.noBackend) }
        guard let joined = backend.rooms.room(room) else { return continuation.resume(throwing: RoomError.left) }
        do {
            joined.show(try JSONValue(encoding: value.user), continuation)
        } catch {
            continuation.resume(throwing: error)
        }
    }
}

/// How rooms are named at the server.
enum RoomName {
    static func of(type: String, id: String) -> String { "\(RoomHost.name)/\(type)-\(id)" }
}

extension SharedReaderKey {
    /// Who is in a room. The client joins it with the first wrapper and leaves it when no wrapper of its presence or of its
    /// topics is left.
    ///
    /// - Parameter initialPresence: what the others see of the user at first; that of the first wrapper counts.
    public static func trebuchetPresence<Presence>(
        _ key: RoomKey<Presence>, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        RoomPresenceKey.Default[RoomPresenceKey(key, roomId: roomId), default: RoomPresence(user: initialPresence())]
    }

    /// Who is in a room, whose kind is told by its name.
    public static func trebuchetPresence<Presence>(
        roomType: String, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        trebuchetPresence(RoomKey(type: roomType), roomId: roomId, initialPresence: initialPresence())
    }

    /// Another name of ``trebuchetPresence(_:roomId:initialPresence:)``.
    public static func instantPresence<Presence>(
        _ key: RoomKey<Presence>, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        trebuchetPresence(key, roomId: roomId, initialPresence: initialPresence())
    }

    /// Another name of ``trebuchetPresence(roomType:roomId:initialPresence:)``.
    public static func instantPresence<Presence>(
        roomType: String, roomId: String, initialPresence: @autoclosure @escaping @Sendable () -> Presence
    ) -> Self where Self == RoomPresenceKey<Presence>.Default {
        trebuchetPresence(RoomKey(type: roomType), roomId: roomId, initialPresence: initialPresence())
    }
}

extension Shared {
    /// Changes what the user shows, and returns when the server shows it; throws what it is refused with. Without a
    /// connection it waits for one.
    public func update<Presence>(
        isolation: isolated (any Actor)? = #isolation, _ change: (inout Presence) -> Void
    ) async throws where Value == RoomPresence<Presence> {
        withLock { change(&$0.user) }
        try await save()
    }
}
