import Foundation
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetServices

struct Member: Codable, Equatable, Sendable { var name: String }
struct Emoji: Codable, Equatable, Sendable { var name: String }
struct Message: Codable, Equatable, Identifiable, Sendable {
    var id = UUID().uuidString
    var from: String
    var text: String
    var time = Date().timeIntervalSince1970
}

extension Schema { fileprivate static let messages = CollectionKey<Message>("messages") }
extension Schema.Rooms { fileprivate static let chat = RoomKey<Member>(type: "chat") }
extension Schema.Topics { fileprivate static let emoji = TopicKey<Emoji>(roomType: "chat", topic: "emoji") }

@MainActor final class Chat {
    @Shared(.trebuchetAuth) var auth: AuthSession
    @Shared var presence: RoomPresence<Member>
    @Shared(.trebuchetTopic(Schema.Topics.emoji, roomId: "lobby")) var emojis: TopicChannel<Emoji>
    @Shared(.trebuchetCollection(Schema.messages, order: [.descending("time")], limit: 20))
    var messages: SyncedCollection<Message>
    var shown: Set<String> = []

    init(name: String) {
        _presence = Shared(.trebuchetPresence(Schema.Rooms.chat, roomId: "lobby", initialPresence: Member(name: name)))
    }

    func run(_ lines: AsyncStream<String>) async throws {
        for await value in $auth.updates where value.state != .loading { break }  // until a stored session is restored
        if !auth.isSignedIn { try await $auth.signInAsGuest() }
        print("\(presence.user.name) is \(auth.user?.email ?? "a guest")")
        let screens = [
            Task { for await _ in $presence.updates { show() } },
            Task { for await _ in $emojis.updates { show() } },
            Task { for await _ in $messages.updates { show() } },
        ]
        defer { for screen in screens { screen.cancel() } }
        for await line in lines {
            let words = line.split(separator: " ").map(String.init)
            do {
                switch (words.first, words.count) {
                case ("/emoji", 2): $emojis.publish(Emoji(name: words[1]), onError: { print("error: \($0)") })
                case ("/mail", 2): try await $auth.sendMagicCode(to: words[1])
                case ("/code", 3): try await $auth.verifyMagicCode(email: words[1], code: words[2])
                default:  // visible at once; sent when the client is connected
                    let message = Message(from: presence.user.name, text: line)
                    $messages.create(message, onError: { print("error: \($0)") })
                }
            } catch { print("error: \(error)") }
        }
    }

    /// Prints each line once.
    func show() {
        for peer in presence.peers { show("\(peer.data.name) is here", peer.id) }
        for event in emojis.events { show("*\(event.data.name)*", event.id.uuidString) }
        for message in messages.items.reversed() { show("\(message.from): \(message.text)", message.id) }
    }

    func show(_ line: String, _ id: String) { if shown.insert(id).inserted { print(line) } }
}

/// Records the output of a chat, instead of a terminal.
@MainActor private final class Terminal {
    @TaskLocal static var current: Terminal?
    private(set) var lines: [String] = []
    private var waiting: [(line: String, CheckedContinuation<Void, Never>)] = []

    func print(_ line: String) {
        lines.append(line)
        let ready = waiting.filter { $0.line == line }
        waiting.removeAll { $0.line == line }
        for (_, continuation) in ready { continuation.resume() }
    }

    /// Returns when the line has been printed.
    func wait(for line: String) async {
        if lines.contains(line) { return }
        await withCheckedContinuation { waiting.append((line, $0)) }
    }
}

@MainActor private func print(_ line: String) { Terminal.current?.print(line) }

@Suite(.timeLimit(.minutes(5))) @MainActor struct ChatExample {
    @Test("two of the chats in Docs/Guides/ChatTutorial.md see each other, publish, write and sign in")
    func chats() async throws {
        let codes = AsyncStream<String>.makeStream()
        let accounts = try await Accounts(mailer: ClosureMailer { code, _ in codes.continuation.yield(code) })
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: accounts.accessPolicy)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        RoomHost.expose(on: server)
        CollectionHost.expose(on: server)
        let port = try await server.start().port

        let (ada, adaTypes, adaRuns) = try start("Ada", port)
        let (bob, bobTypes, bobRuns) = try start("Bob", port)
        await ada.wait(for: "Bob is here")
        await bob.wait(for: "Ada is here")
        #expect(ada.lines.first == "Ada is a guest")
        adaTypes.yield("Hello")
        await bob.wait(for: "Ada: Hello")
        bobTypes.yield("/emoji tada")
        await ada.wait(for: "*tada*")
        adaTypes.yield("/mail ada@example.org")
        for await code in codes.stream {
            adaTypes.yield("/code ada@example.org \(code)")
            adaTypes.yield("/code ada@example.org \(code)")
            break
        }
        await ada.wait(for: "error: no valid code for this address; request another code")
        adaTypes.finish()
        bobTypes.finish()
        try await adaRuns.value
        try await bobRuns.value
        await server.shutdown(drain: .zero)
    }

    @Test("with the server stopped each typed line shows at once")
    func stopped() async throws {
        let accounts = try await Accounts(mailer: ClosureMailer { _, _ in })
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: accounts.accessPolicy)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        RoomHost.expose(on: server)
        CollectionHost.expose(on: server)
        let (ada, types, runs) = try start("Ada", try await server.start().port)
        types.yield("one")
        await ada.wait(for: "Ada: one")
        await server.shutdown(drain: .zero)
        for line in ["two", "/emoji tada", "three"] { types.yield(line) }
        await ada.wait(for: "Ada: two")
        await ada.wait(for: "Ada: three")
        types.finish()
        try await runs.value
    }

    private func start(
        _ name: String, _ port: Int
    ) throws -> (Terminal, AsyncStream<String>.Continuation, Task<Void, any Error>) {
        let terminal = Terminal()
        let typed = AsyncStream<String>.makeStream()
        let backend = TrebuchetBackend(transport: .webSocket(host: "127.0.0.1", port: port))
        let chat = SharedStore.$current.withValue(SharedStore()) { backend.withCurrent { Chat(name: name) } }
        let task = Terminal.$current.withValue(terminal) {
            Task {
                try await chat.run(typed.stream)
                await backend.close()
            }
        }
        return (terminal, typed.continuation, task)
    }

    @Test("the page shows the chat that is tested here")
    func page() throws {
        let file = URL(filePath: #filePath)
        let root = packageRoot
        let page = try String(contentsOf: root.appending(path: "Docs/Guides/ChatTutorial.md"), encoding: .utf8)
        let source = try String(contentsOf: file, encoding: .utf8)
        let chat = try #require(source.firstMatch(of: /(?ms)^@MainActor final class Chat \{.*?^\}/)).output
        #expect(page.contains(chat))
    }
}
