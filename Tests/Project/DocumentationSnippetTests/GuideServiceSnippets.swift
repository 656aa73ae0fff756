// swift-format-ignore-file
// The code of the guides for apps with services, as on the pages: GuideSnippetTests compares them. Only the tests among it are run.
import Foundation
import SharedState
import Testing
import Trebuchet
import TrebuchetServices
import TrebuchetTesting

private struct Todo: Codable, Identifiable, Equatable, Sendable { var id: String; var title: String; var isDone = false; var tags: [String]? }

extension Schema { fileprivate static let todos = CollectionKey<Todo>("todos") }

private struct ChatPresence: Codable, Equatable, Sendable {
    var name: String
    var isTyping = false
}

extension Schema.Rooms { fileprivate static let chat = RoomKey<ChatPresence>(type: "chat") }
extension Schema.Topics { fileprivate static let emoji = TopicKey<Emoji>(roomType: "chat", topic: "emoji") }

private func show<each Value>(_ values: repeat each Value) {}

@MainActor
private enum ServicesGuide {
    static func signIn(_ code: String, _ token: String, _ nonce: String, _ id: String, file: String) async throws {
        TrebuchetBackend.setCurrent(TrebuchetBackend(  // once
            transport: .webSocket(host: "localhost", port: 8080), credentials: FileCredentialStore(path: file)))
        @Shared(.trebuchetAuth) var auth: AuthSession

        $auth.signInAsGuest(onError: { show($0) })
        try await $auth.sendMagicCode(to: "ada@example.org")
        try await $auth.verifyMagicCode(email: "ada@example.org", code: code)
        try await $auth.signIn(idToken: token, provider: "google", nonce: nonce)    // a token of an OpenID Connect provider

        for session in try await $auth.sessions() { show(session.label, session.lastRenewed, session.isCurrent) }
        try await $auth.labelSession("Ada's phone")
        try await $auth.endSession(id)                  // or endOtherSessions()
        try await $auth.sendAddressCode(to: "new@example.org")    // within 10 minutes of signing in
        try await $auth.changeAddress(to: "new@example.org", code: code)
        try await $auth.deleteAccount()                 // later than 10 minutes after signing in: deleteAccount(code:)
    }

    static func join(_ backend: TrebuchetBackend) async throws {
        @Shared(.trebuchetPresence(Schema.Rooms.chat, roomId: "lobby", initialPresence: ChatPresence(name: "Ada")))
        var presence: RoomPresence<ChatPresence>
        @Shared(.trebuchetTopic(Schema.Topics.emoji, roomId: "lobby")) var channel: TopicChannel<Emoji>

        _ = presence.peers                                      // the other members; presence.users has each user once
        $presence.withLock { $0.user.isTyping = true }      // visible at once; the change is sent
        try await $presence.update { $0.isTyping = false }  // returns when the server has applied it
        _ = try await backend.rooms(Schema.Rooms.chat)          // the rooms of a type that have members, if the rules permit lists
        try await $channel.publish(Emoji(name: "tada"))     // returns when the server has delivered it to the room
        _ = channel.events                                      // the last 50 events of other members
        await backend.leaveAllRooms()                          // otherwise a membership remains for the grace period
    }
}

@MainActor
private func write() async throws {
    @Shared(Schema.todos) var todos: SyncedCollection<Todo>
    @Shared(.trebuchetCollection(Schema.todos, where: [.field("isDone", equals: .bool(false))], order: [.ascending("title")], limit: 20))
    var open: SyncedCollection<Todo>

    _ = todos.items                                                     // with isLoading, isStale, isSyncing, error, lastSyncedAt
    $todos.create(Todo(id: "1", title: "Milk"), onError: { show($0) })  // visible at once
    try await $todos.update("1") { $0.isDone = true }               // returns when the server has applied it
    try await $todos.link("1", "tags", to: "urgent")                // adds to an array; concurrent links add up
    try await $todos.delete("1")
    _ = todos.document("1")?.updatedAt                                  // server metadata: revision, times, creator, expiry

    try await $todos.increment("1", "votes", by: 1)                 // concurrent increments add up
    try await $todos.merge("1", ["place": .object(["city": .string("Bonn")])])  // a part of a field (RFC 7396)
    try await $todos.update("1", if: .field("isDone", equals: .bool(false))) { $0.isDone = true }   // or conditionFailed
    try await $todos.link("1", "who", to: "ada", in: "people")      // refused unless people has a document "ada"
    try await $todos.create(Todo(id: "2", title: "Now"), expiresIn: .seconds(3_600))
    try await $todos.expire("2", in: .seconds(60))                  // nil: no expiry
    try await $todos.transaction { todos in                         // all or nothing, up to 100 commands
        try todos.update("1") { $0.isDone = true }
        try todos.delete("2", if: .revision(7))
    }
    _ = open
}

private enum TestingGuide {
    struct Mailbox {
        func code(for address: String) -> String { address }
    }

    @Trebuchet
    distributed actor TodoList {
        distributed func addTodo(title: String) -> Todo { Todo(id: "1", title: title) }
    }

    @Trebuchet
    distributed actor Diary {
        @StreamedState(persisted: true) private var pages: [String] = []

        distributed func write(_ page: String) -> Int {
            pages.append(page)
            return pages.count
        }

        distributed func read() -> [String] { pages }
    }

    @Suite(.timeLimit(.minutes(5))) struct Tests {
        @Test("an added todo has its title") func adding() async throws {
            try await withTestServer { server in
                await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
            } body: { client, server in
                let todos = try client.resolve(TodoList.self, id: "todos")
                #expect(try await todos.addTodo(title: "Milk").title == "Milk")
            }
        }

        @Test("a persisted state survives a kill of the server") func restarting() async throws {
            try await withTestServer(store: MemoryStore()) { server in
                await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
            } body: { test in
                let diary = try await test.connect().resolve(Diary.self, id: "diary")
                _ = try await diary.write("a")
                await test.kill()                               // cuts connections; new ones are refused
                try await test.restart()                        // starts another server on the same port
                #expect(try await diary.read() == ["a"])        // the client has reconnected
            }
        }
    }

    @MainActor static func users(_ server: TrebuchetServer, _ mailbox: Mailbox, _ todoKey: CollectionKey<Todo>) async throws {
        let ada = TrebuchetBackend(transport: .local(server))
        try await ada.client.connect()
        let auth = ada.withCurrent { Shared(.trebuchetAuth) }
        try await auth.sendMagicCode(to: "ada@example.org")
        try await auth.verifyMagicCode(email: "ada@example.org", code: mailbox.code(for: "ada@example.org"))
        let todos = ada.withCurrent { Shared(.trebuchetCollection(todoKey)) }
        _ = todos
    }

    @Trebuchet
    distributed actor Notes {
        @StreamedState private var notes: [String] = []

        @Idempotent distributed func add(_ note: String) { notes.append(note) }
        @Idempotent distributed func all() -> [String] { notes }
    }

    static func faults() async throws {
        try await withTestServer { server in
            await server.expose(Notes(actorSystem: server.actorSystem), as: "notes")
        } body: { _, server in
            let link = try FaultyLink(to: #require(server.address), seed: 17, faults: .harsh)
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(5)
            options.reconnect.retriesFirstConnection = true
            let client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            try await client.connect()
            let notes = try client.resolve(Notes.self, id: "notes")
            for number in 1...50 { try await notes.add("\(number)") }      // @Idempotent: repeated after a loss
            await link.setFaults(.none)                                    // no faults on new connections
            await link.disconnectAll()                                      // one fault now
            #expect(try await notes.all() == (1...50).map(String.init))    // @Idempotent too
            await client.close()
            await link.close()
        }
    }
}
