public import SharedState
internal import TrebuchetClient
public import TrebuchetServicesClient
internal import TrebuchetURLSession

/// What members show of themselves.
public struct Member: Codable, Equatable, Sendable {
    public var name: String
    public var isTyping = false
}

/// A sign to the present members.
public struct Wave: Codable, Equatable, Sendable {
    public var from: String
}

/// A line of the chat.
public struct Message: Codable, Equatable, Identifiable, Sendable {
    public var id: String
    public var from: String
    public var text: String
}

extension Schema { static let messages = CollectionKey<Message>("messages") }
extension Schema.Rooms { static let chat = RoomKey<Member>(type: "chat") }
extension Schema.Topics { static let waves = TopicKey<Wave>(roomType: "chat", topic: "waves") }

/// The view model of a chat: the user, the present members, the messages, and waves.
///
/// Create it with a backend: `backend.withCurrent { ChatModel(name: "Ada") }`.
@MainActor
public final class ChatModel {
    @Shared(.trebuchetAuth) public var auth: AuthSession
    @Shared public var presence: RoomPresence<Member>
    @Shared(.trebuchetTopic(Schema.Topics.waves, roomId: "lobby")) public var waves: TopicChannel<Wave>
    @Shared(.trebuchetCollection(Schema.messages)) public var messages: SyncedCollection<Message>

    private let name: String
    private var sent = 0

    public init(name: String) {
        self.name = name
        _presence = Shared(.trebuchetPresence(Schema.Rooms.chat, roomId: "lobby", initialPresence: Member(name: name)))
    }

    /// The names of the other members, sorted.
    public var others: [String] { presence.peers.map(\.data.name).sorted() }

    /// The messages as lines.
    public var lines: [String] { messages.items.map { "\($0.from): \($0.text)" } }

    /// Signs in as a guest, unless a stored session was restored.
    public func signIn() async throws {
        for await session in $auth.updates where session.state != .loading { break }
        if !auth.isSignedIn { try await $auth.signInAsGuest() }
    }

    /// Sends a message. It is shown at once, and sent when there is a connection.
    public func send(_ text: String) {
        sent += 1
        $messages.create(Message(id: "\(name)-\(sent)", from: name, text: text))
    }

    /// Waves to the present members; returns when the server has delivered it.
    public func wave() async throws { try await $waves.publish(Wave(from: name)) }

    /// Shows to others that the user is typing.
    public func setTyping(_ isTyping: Bool) { $presence.withLock { $0.user.isTyping = isTyping } }
}

extension TrebuchetBackend {
    /// The backend of the app: the services of a server, over the system's WebSockets.
    public static func chat(at address: String) -> TrebuchetBackend {
        TrebuchetBackend(transport: URLSessionTransport(address))
    }
}
