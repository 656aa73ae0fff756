import SharedState
import TrebuchetServices

struct Guest: Codable, Equatable, Sendable { var name: String }
struct Line: Codable, Equatable, Sendable { var text: String }

extension Schema.Rooms {
    static let chat = RoomKey<Guest>(type: "chat")
}
extension Schema.Topics {
    static let lines = TopicKey<Line>(roomType: "chat", topic: "lines")
}

@MainActor
final class ChatRoom {
    @Shared(.trebuchetAuth) var auth: AuthSession
    @Shared(.trebuchetTopic(Schema.Topics.lines, roomId: "lobby")) var lines: TopicChannel<Line>
    @Shared var presence: RoomPresence<Guest>

    init(name: String) {
        _presence = Shared(
            .trebuchetPresence(Schema.Rooms.chat, roomId: "lobby", initialPresence: Guest(name: name)))
    }

    func signIn() async throws {
        for await session in $auth.updates where session.state != .loading { break }
        if !auth.isSignedIn { try await $auth.signInAsGuest() }
    }

    var others: [String] { presence.peers.map(\.data.name) }

    func say(_ text: String) async throws {
        try await $lines.publish(Line(text: text))
    }
}
