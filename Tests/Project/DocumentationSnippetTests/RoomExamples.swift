import SharedState
import Testing
import Trebuchet
import TrebuchetServices

private struct EmojiPayload: Codable, Sendable, Equatable {
    var emoji: String
}

private struct ChatPresence: Codable, Sendable, Equatable {
    var name: String
    var isTyping = false
}

extension Schema.Topics {
    fileprivate static let emoji = TopicKey<EmojiPayload>(roomType: "demo", topic: "emoji")
}

extension Schema.Rooms {
    fileprivate static let chat = RoomKey<ChatPresence>(type: "demo")
}

/// A screen with flying emojis and the present members, as plain main-actor code instead of a view.
@MainActor
private final class ChatScreen {
    @Shared(.instantTopic(Schema.Topics.emoji, roomId: "demo-123"))
    private var channel: TopicChannel<EmojiPayload>

    @Shared(.instantPresence(Schema.Rooms.chat, roomId: "demo-123", initialPresence: ChatPresence(name: "Ada")))
    private var presence: RoomPresence<ChatPresence>

    var animated: [String] = []
    var toasts: [String] = []

    func celebrate() {
        $channel.publish(EmojiPayload(emoji: "🎉")) { payload in
            self.animated.append(payload.emoji)
        } onError: { error in
            self.toasts.append("Failed to send emoji")
        }
    }

    func type() { $presence.withLock { $0.user.isTyping = true } }

    var body: [String] {
        var lines: [String] = []
        if let error = channel.error {
            lines.append("Topic error: \(error.localizedDescription)")
        }
        lines.append("I am \(presence.user.name)")
        for peer in presence.peers { lines.append("\(peer.data.name)\(peer.data.isTyping ? " types" : "")") }
        if presence.isLoading { lines.append("…") }
        if let error = presence.error { lines.append("\(error)") }
        if let event = channel.latestEvent { lines.append(event.data.emoji) }
        return lines
    }

    /// Returns when the screen shows a line.
    func wait(for line: String) async {
        for await _ in $presence.updates where body.contains(line) { return }
    }

    func waitForEvent(_ line: String) async {
        for await _ in $channel.updates where body.contains(line) { return }
    }
}

@Suite(.timeLimit(.minutes(5))) @MainActor struct RoomExamples {
    @Test("the examples of topics and presence compile, and two screens see each other")
    func screens() async throws {
        var access = AccessPolicy.open
        access.identifiesCallers = true
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
        RoomHost.expose(on: server)
        let one = TrebuchetBackend(client: TrebuchetClient(transport: .local(server)))
        let two = TrebuchetBackend(client: TrebuchetClient(transport: .local(server)))
        let ada = SharedStore.$current.withValue(SharedStore()) { one.withCurrent { ChatScreen() } }
        let bob = SharedStore.$current.withValue(SharedStore()) { two.withCurrent { ChatScreen() } }
        await ada.wait(for: "Ada")
        bob.type()
        await ada.wait(for: "Ada types")
        ada.celebrate()
        #expect(ada.animated == ["🎉"])
        await bob.waitForEvent("🎉")
        #expect(ada.toasts.isEmpty)
        await one.client.close()
        await two.client.close()
        await server.shutdown(drain: .zero)
    }
}
