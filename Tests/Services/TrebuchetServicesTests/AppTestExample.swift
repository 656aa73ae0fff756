import Foundation
import SharedState
import Synchronization
import Testing
import Trebuchet
import TrebuchetServices
import TrebuchetTesting

/// The example of Docs/Guides/TestingYourApp.md with sign-in and collections, and related statements of Collections.md.
@Suite(.timeLimit(.minutes(5))) struct AppTestExample {
    private struct Todo: Codable, Identifiable, Equatable, Sendable { var id: String; var title: String }

    private let todoKey = CollectionKey<Todo>("todos")

    /// Stores the codes instead of mailing them.
    private final class Mailbox: Sendable {
        private let codes = Mutex<[String: String]>([:])

        var mailer: ClosureMailer { ClosureMailer { code, address in self.codes.withLock { $0[address] = code } } }
        func code(for address: String) -> String { codes.withLock { $0[address] ?? "" } }
    }

    @Test("documents with read access for their creator are visible to the creator only")
    @MainActor func ownTodos() async throws {
        let mailbox = Mailbox()
        let store = MemoryStore()
        let accounts = try await Accounts(store: store, mailer: mailbox.mailer)
        let rules = try RulesFile(
            json: Array(#"{"collections":{"todos":{"create":"user","read":"creator"}}}"#.utf8))
        try await withTestServer(access: accounts.accessPolicy) { server in
            await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
            CollectionHost.expose(on: server, store: store, rules: rules)
        } body: { _, server in
            func person(_ email: String) async throws -> TrebuchetBackend {
                let backend = TrebuchetBackend(transport: .local(server))
                try await backend.client.connect()
                let auth = backend.withCurrent { Shared(.trebuchetAuth) }
                try await auth.sendMagicCode(to: email)
                try await auth.verifyMagicCode(email: email, code: mailbox.code(for: email))
                return backend
            }
            let ada = try await person("ada@example.org")
            let bob = try await person("bob@example.org")
            let todos = ada.withCurrent { Shared(.trebuchetCollection(todoKey)) }
            try await todos.create(Todo(id: "1", title: "Milk"))
            #expect(try await ada.get(todoKey).items == [Todo(id: "1", title: "Milk")])
            #expect(try await bob.get(todoKey).items.isEmpty)
            await ada.close()
            await bob.close()
        }
    }

    @Test(
        "a guest who signs in with the address of an account becomes that account, and leaves the guest's documents behind"
    )
    @MainActor func guestWithAddressOfAnAccount() async throws {
        let mailbox = Mailbox()
        let store = MemoryStore()
        let accounts = try await Accounts(store: store, mailer: mailbox.mailer)
        try await withTestServer(access: accounts.accessPolicy) { server in
            await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
            CollectionHost.expose(on: server, store: store)
        } body: { _, server in
            func signIn(_ auth: Shared<AuthSession>) async throws -> User {
                try await auth.sendMagicCode(to: "ada@example.org")
                return try await auth.verifyMagicCode(
                    email: "ada@example.org", code: mailbox.code(for: "ada@example.org"))
            }
            let first = TrebuchetBackend(transport: .local(server))
            try await first.client.connect()
            let account = try await signIn(first.withCurrent { Shared(.trebuchetAuth) })

            let second = TrebuchetBackend(transport: .local(server))
            try await second.client.connect()
            let auth = second.withCurrent { Shared(.trebuchetAuth) }
            let guest = try await auth.signInAsGuest()
            let todos = second.withCurrent { Shared(.trebuchetCollection(todoKey)) }
            try await todos.create(Todo(id: "1", title: "Milk"))
            // The app can read the guest's documents first, and create them again as the account.
            let own = try await second.get(
                todoKey, CollectionQuery(where: [.field("$creator", equals: .string(guest.id))])
            ).items
            #expect(try await signIn(auth) == account && guest.id != account.id)
            await #expect(throws: CollectionError.self) { try await todos.update("1") { $0.title = "Bread" } }
            for todo in own { try await todos.create(Todo(id: "copy-\(todo.id)", title: todo.title)) }
            try await todos.update("copy-1") { $0.title = "Bread" }
            await first.close()
            await second.close()
        }
    }

    @Test("pages are loaded in sequence, and the rooms of a type are listed")
    @MainActor func pages() async throws {
        let store = MemoryStore()
        var access = AccessPolicy.open
        access.identifiesCallers = true
        let rules = try RulesFile(json: Array(#"{"rooms":{"chat":{"list":"anyone"}}}"#.utf8))
        try await withTestServer(access: access) { server in
            CollectionHost.expose(on: server, store: store)
            RoomHost.expose(on: server, rules: rules)
        } body: { _, server in
            let backend = TrebuchetBackend(transport: .local(server))
            try await backend.client.connect()
            let todos = backend.withCurrent { Shared(.trebuchetCollection(todoKey)) }
            for number in 1...5 { try await todos.create(Todo(id: "\(number)", title: "Milk")) }
            var all: [Todo] = []
            var cursor: String?
            repeat {
                let query = CollectionQuery(order: [.ascending("id")], limit: 2, after: cursor)
                let page = try await backend.get(todoKey, query)
                all += page.items
                cursor = page.cursor
            } while cursor != nil
            #expect(all.map(\.id) == ["1", "2", "3", "4", "5"])

            let chat = RoomKey<[String: String]>(type: "chat")
            #expect(try await backend.rooms(chat).isEmpty)
            let lobby = backend.withCurrent { Shared(.trebuchetPresence(chat, roomId: "lobby", initialPresence: [:])) }
            for await value in lobby.updates where value.isConnected { break }
            #expect(try await backend.rooms(chat) == [RoomSummary(name: "chat-lobby", members: 1)])
            #expect(try await backend.rooms(chat, after: "chat-lobby").isEmpty)
            await #expect(throws: RoomError.forbidden) {
                try await backend.rooms(RoomKey<[String: String]>(type: "game"))
            }
            await backend.close()
        }
    }
}
