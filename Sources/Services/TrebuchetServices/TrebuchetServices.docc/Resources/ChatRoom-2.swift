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

    func signIn() async throws {
        for await session in $auth.updates where session.state != .loading { break }
        if !auth.isSignedIn { try await $auth.signInAsGuest() }
    }
}
