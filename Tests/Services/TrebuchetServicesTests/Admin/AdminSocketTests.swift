import Foundation
import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// Operations of administrators on a server, through its socket.
@MainActor @Suite(.timeLimit(.minutes(5))) struct AdminSocketTests {
    private func todo(_ id: String, title: String = "", creator: String? = nil) throws -> Document {
        let fields = try JSONValue(encoding: Todo(id: id, title: title)).decode(JSONObject.self)
        return Document(id: DocumentID(id), fields: fields, creator: creator)
    }

    // MARK: Collections

    @Test("documents are imported, listed and removed, and readers of the collection see this immediately")
    func documents() async throws {
        try await AdminTestEnvironment.run { environment in
            let admin = try environment.admin()
            let todos = try await environment.guest().todos()
            await shows(todos) { !$0.isLoading }
            let both = [try todo("1", creator: "ada"), try todo("2")]
            let first = try await admin.restore(both, replaces: false)
            #expect(first?.created == 2 && first?.done == 2 && first?.problem == nil)
            await shows(todos) { $0.items.ids == ["1", "2"] }
            #expect(try await admin.documents("todos").map(\.creator) == ["ada", nil])
            #expect(try await admin.documents("todos", after: "1").map(\.id) == ["2"])
            #expect(try await admin.documents("todos", limit: 1).map(\.id) == ["1"])
            await #expect(throws: CollectionError.forbidden(.delete, id: "1")) { try await todos.delete("1") }
            guard case .removed(1) = try await admin.ask(.removeDocuments(collection: "todos", ids: ["1", "none"]))
            else {
                Issue.record("the document was not removed")
                return
            }
            await shows(todos) { $0.items.ids == ["2"] }
            guard case .removed(1) = try await admin.ask(.removeOldest(collection: "todos", limit: 10)) else {
                Issue.record("the documents were not removed")
                return
            }
            await shows(todos) { $0.items.isEmpty && !$0.isLoading }
            #expect(try await admin.documents("todos").isEmpty)
            // From a large collection the oldest documents are removed first.
            _ = try await admin.restore(["9", "5", "7"].map { try todo($0) }, replaces: false)
            for (removed, left) in [(2, ["7"]), (1, [])] {
                let answer = try await admin.ask(.removeOldest(collection: "todos", limit: 2))
                guard case .removed(let count) = answer else {
                    Issue.record("\(answer)")
                    return
                }
                #expect(count == removed)
                #expect(try await admin.documents("todos").map(\.id) == left.map { DocumentID($0) })
            }
        }
    }

    @Test("a page of large documents is limited by the size of a response, and the next continues after it")
    func largeDocuments() async throws {
        try await AdminTestEnvironment.run { environment in
            let admin = try environment.admin()
            let text = String(repeating: "x", count: 60_000)
            for part in [100..<150, 150..<200] {
                let documents = try part.map { try todo("\($0)", title: text) }
                #expect(try await admin.restore(documents, replaces: false)?.created == 50)
            }
            var ids: [DocumentID] = []
            while case let page = try await admin.documents("todos", after: ids.last?.text, limit: 500), !page.isEmpty {
                ids += page.map(\.id)
            }
            #expect(ids.map(\.text) == (100..<200).map { "\($0)" })
        }
    }

    @Test(
        "importing a document again changes nothing; an existing one is replaced or kept; the first invalid one ends the import"
    )
    func restoring() async throws {
        try await AdminTestEnvironment.run { environment in
            let admin = try environment.admin()
            let old = try todo("1", title: "old", creator: "ada")
            let new = try todo("1", title: "new", creator: "eve")
            #expect(try await admin.restore([old], replaces: true)?.created == 1)
            #expect(try await admin.restore([old], replaces: true)?.skipped == 1)
            #expect(try await admin.restore([new], replaces: false)?.skipped == 1)
            #expect(try await admin.documents("todos").first?.creator == "ada")
            #expect(try await admin.restore([new], replaces: true)?.replaced == 1)
            let document = try await admin.documents("todos").first
            #expect(document?.creator == "eve" && document?.fields["title"] == .string("new"))

            let wrong = Document(id: "3", fields: ["id": .string("4")])
            let part = try await admin.restore([try todo("2"), wrong, try todo("5")], replaces: true)
            #expect(part?.done == 1 && part?.problem?.contains("its member 'id' is not '3'") == true)
            #expect(try await admin.documents("todos").map(\.id) == ["1", "2"])
            await #expect(throws: Admin.Failed.self) { try await admin.restore([old], replaces: true, in: "a/b") }
        }
    }

    @Test("an export is a snapshot, although documents are changed while it is read")
    func export() async throws {
        try await AdminTestEnvironment.run { environment in
            let (admin, other) = (try environment.admin(), try environment.admin())
            // More than the connection can buffer, so that the last part is sent later.
            let text = String(repeating: "x", count: 20_000)
            let all = try (100..<300).map { try todo("\($0)", title: text) }
            for part in stride(from: 0, to: 200, by: 50) {
                #expect(try await admin.restore(Array(all[part..<part + 50]), replaces: false)?.created == 50)
            }
            try await admin.link.write(AdminRequest.export(collection: "todos"))
            try await admin.link.flush()
            guard case .document(let first) = try await admin.answer() else {
                Issue.record("there is no first document")
                return
            }
            _ = try await other.ask(.removeOldest(collection: "todos", limit: 10))
            var ids = [first.id]
            var count: Int?
            while count == nil {
                switch try await admin.answer() {
                case .document(let document): ids.append(document.id)
                case .end(let all): count = all
                case let answer: Issue.record("\(answer)")
                }
            }
            #expect(count == 200 && ids == all.map(\.id))
        }
    }

    @Test("collections are listed in pages, including those only in the store", arguments: [true, false])
    func collections(isCataloged: Bool) async throws {
        let memory = MemoryStore()
        let store: any StateStore = isCataloged ? memory : TestStore(memory: memory, part: StateRelay(.working))
        try await AdminTestEnvironment.run(store: store) { environment in
            let admin = try environment.admin()
            for name in ["a", "b", "c", "d"] {
                _ = try await admin.restore([try todo("1"), try todo("2")], replaces: false, in: name)
            }
            _ = try await admin.ask(.removeOldest(collection: "b", limit: 10))
            func names(_ after: String?, _ limit: Int) async throws -> [String] {
                guard case .collections(let found) = try await admin.ask(.collections(after: after, limit: limit))
                else {
                    return []
                }
                #expect(found.allSatisfy { $0.documents == 2 && $0.bytes > 20 })
                return found.map(\.name)
            }
            #expect(try await names(nil, 10) == ["a", "c", "d"])
            #expect(try await names(nil, 2) == ["a", "c"])
            #expect(try await names("a", 2) == ["c", "d"])
            #expect(try await names("d", 2) == [])
        }
    }

    // MARK: Rooms

    @Test("a kicked member is out immediately, and cannot join again for a time")
    func kick() async throws {
        try await AdminTestEnvironment.run { environment in
            let admin = try environment.admin()
            let (ada, bob) = (try await environment.guest(), try await environment.guest())
            let auth = ada.backend.withCurrent { Shared(.trebuchetAuth) }
            let user = try await auth.signInAsGuest()
            let (adas, bobs) = (
                try ada.client.resolve(Room.self, id: "rooms/chat-a"),
                try bob.client.resolve(Room.self, id: "rooms/chat-a")
            )
            let ticket = try await adas.join(presence: .integer(1), token: nil, attempt: nil)
            let other = try await bobs.join(presence: nil, token: nil, attempt: nil)
            guard case .rooms(let rooms) = try await admin.ask(.rooms(after: nil, limit: 10)),
                case .members(let members) = try await admin.ask(.members(room: "chat-a", after: nil, limit: 10))
            else {
                Issue.record("no room is listed")
                return
            }
            #expect(rooms == [RoomSummary(name: "chat-a", members: 2)])
            #expect(Set(members.map(\.membershipID)) == [ticket.membershipID, other.membershipID])
            let listed = try #require(members.first { $0.membershipID == ticket.membershipID })
            #expect(listed.principal == user.id && listed.host == "127.0.0.1" && listed.isConnected)
            #expect(listed.presence == .integer(1))

            let kick = AdminRequest.kick(membershipID: ticket.membershipID, room: "chat-a", seconds: 3_600)
            #expect(try await admin.isDone(kick) == true)
            #expect(try await admin.isDone(kick) == false)
            let refused = await #expect(throws: RoomError.self) {
                try await adas.join(presence: nil, token: ticket.token, attempt: nil)
            }
            guard case .kicked(3_590_000...3_600_000)? = refused else {
                Issue.record("\(String(describing: refused))")
                return
            }
            _ = try await ada.client.resolve(Room.self, id: "rooms/chat-b").join(
                presence: nil, token: nil, attempt: nil)
            #expect(try await admin.isDone(.kick(membershipID: other.membershipID, room: "chat-a", seconds: 0)) == true)
            _ = try await bobs.join(presence: nil, token: nil, attempt: nil)
            await #expect(throws: Admin.Failed(reason: "room 'none' does not exist")) {
                try await admin.ask(.members(room: "none", after: nil, limit: 10))
            }
        }
    }

    // MARK: Accounts

    @Test("a granted or revoked role takes effect immediately for existing and new connections")
    func roles() async throws {
        try await AdminTestEnvironment.run { environment in
            let doorman = RulesTestServer(actorSystem: environment.server.actorSystem)
            await environment.server.expose(doorman, as: RulesTestServer.name)
            let admin = try environment.admin()
            let credentials = InMemoryCredentialStore()
            func backend() -> TrebuchetBackend {
                TrebuchetBackend(
                    transport: .webSocket(host: environment.address.host, port: environment.address.port),
                    credentials: credentials)
            }
            let first = backend()
            try await first.client.connect()
            let auth = first.withCurrent { Shared(.trebuchetAuth) }
            let user = try await auth.signInAsGuest()
            func roles(_ backend: TrebuchetBackend) async throws -> Set<String> {
                try await backend.client.resolve(RulesTestServer.self, id: RulesTestServer.name).roles()
            }
            #expect(try await roles(first) == ["guest"])
            let grant = AdminRequest.setRole(role: "editor", account: user.id, isGranted: true)
            #expect(try await admin.isDone(grant) == true)
            #expect(try await admin.isDone(grant) == false, "the account has the role already")
            #expect(try await roles(first) == ["guest", "editor"])
            // Its access token was issued before.
            let second = backend()
            try await second.client.connect()
            #expect(try await roles(second) == ["guest", "editor"])
            guard case .accounts(let accounts) = try await admin.ask(.accounts(after: nil, limit: 10)) else {
                Issue.record("no accounts")
                return
            }
            #expect(accounts.map(\.id) == [user.id] && accounts.first?.roles == ["editor"])
            #expect(accounts.first?.email == nil && accounts.first?.sessions == 1)

            let take = AdminRequest.setRole(role: "editor", account: user.id, isGranted: false)
            #expect(try await admin.isDone(take) == true)
            #expect(try await admin.isDone(take) == false)
            #expect(try await roles(first) == ["guest"])
            #expect(try await roles(second) == ["guest"])
            let third = backend()
            try await third.client.connect()
            #expect(try await roles(third) == ["guest"])
            for backend in [first, second, third] { await backend.client.close() }
            for role in ["user", "anyone", "creator", "a b", ""] {
                await #expect(throws: Admin.Failed.self) {
                    try await admin.ask(.setRole(role: role, account: user.id, isGranted: true))
                }
            }
            await #expect(throws: Admin.Failed(reason: "account 'x@b.c' does not exist")) {
                try await admin.ask(.setRole(role: "editor", account: "x@b.c", isGranted: true))
            }
        }
    }

    @Test("a session ended or an account removed by an administrator takes effect for its connections immediately")
    func sessions() async throws {
        let store = MemoryStore()
        try await AdminTestEnvironment.run(store: store) { environment in
            let admin = try environment.admin()
            let (ada, bob) = (try await environment.guest(), try await environment.guest())
            var ids: [String] = []
            for guest in [ada, bob] {
                ids.append(try await guest.backend.withCurrent { Shared(.trebuchetAuth) }.signInAsGuest().id)
            }
            guard case .sessions(let all) = try await admin.ask(.sessions(account: nil, after: nil, limit: 10)),
                case .sessions(let own) = try await admin.ask(.sessions(account: ids[0], after: nil, limit: 10))
            else {
                Issue.record("no sessions")
                return
            }
            #expect(Set(all.map(\.account)) == Set(ids) && own.map(\.account) == [ids[0]])
            #expect(own.first?.connections == 1 && own.first.map { $0.expiry > $0.renewedAt } == true)
            let session = try #require(own.first).name
            #expect(try await admin.isDone(.endSession(name: session)) == true)
            #expect(try await admin.isDone(.endSession(name: session)) == false)
            #expect(environment.accounts.connections.count == 1)
            #expect(try await admin.isDone(.removeAccount(name: ids[1])) == true)
            #expect(try await admin.isDone(.removeAccount(name: ids[1])) == false)
            #expect(environment.accounts.connections.count == 0)
            #expect(try await store.list("auth", prefix: "account/").isEmpty)
            #expect(try await store.list("auth", prefix: "session/").isEmpty)
            #expect(await environment.accounts.accountCount == AccountCount())
        }
    }

    // MARK: The socket

    @Test("each operation and its administrator are logged in one line")
    func log() async throws {
        try await AdminTestEnvironment.run { environment in
            let admin = try environment.admin()
            _ = try await admin.ask(.removeDocuments(collection: "todos", ids: ["1\nforged"]))
            _ = try? await admin.ask(.setRole(role: "editor", account: "nobody", isGranted: true))
            let uid = geteuid()
            // A busy machine logs further lines.
            #expect(
                environment.log.lines.filter { $0.hasPrefix("admin:") } == [
                    "admin: uid \(uid): remove '1\\nforged' from collection 'todos'",
                    "admin: uid \(uid): grant role 'editor' to 'nobody'",
                    "admin: uid \(uid): request failed: account 'nobody' does not exist",
                ])
        }
    }

    @Test("at most four administrators use a server at once, and a departing one makes room")
    func connections() async throws {
        try await AdminTestEnvironment.run { environment in
            var admins: [Admin] = []
            for _ in 1...4 {
                let admin = try environment.admin()
                _ = try await admin.ask(.rooms(after: nil, limit: 1))
                admins.append(admin)
            }
            let fifth = try environment.admin()
            await #expect(throws: Admin.Failed(reason: "the admin socket has reached its limit of 4 connections")) {
                try await fifth.answer()
            }
            admins.removeLast()
            let isFree = await eventually {
                guard let admin = try? environment.admin() else { return false }
                return (try? await admin.ask(.rooms(after: nil, limit: 1))) != nil
            }
            #expect(isFree)
        }
    }

    @Test("an invalid or oversized line ends only its connection, with a reason")
    func garbage() async throws {
        try await AdminTestEnvironment.run { environment in
            let other = try environment.admin()
            for (request, reason) in [
                (#"{"rooms":{}}"#, "invalid message"), ("nonsense", "invalid message"),
                (#"{"obliterate":{}}"#, "invalid message"),
            ] {
                let admin = try environment.admin()
                try await admin.link.write(raw: Array((request + "\n").utf8))
                let failed = await #expect(throws: Admin.Failed.self) { try await admin.answer() }
                #expect(failed?.reason.hasPrefix(reason) == true, "\(String(describing: failed))")
                #expect(try await admin.link.next(AdminResponse.self) == nil)
            }
            let long = try environment.admin()
            // The server may have closed the connection before all of the line was sent.
            try? await long.link.write(
                raw: Array(repeating: 0x20, count: AdminConnection.maximumLineLength + (256 << 10)))
            do {
                let answer = try await long.answer()
                Issue.record("\(answer)")
            } catch let failed as Admin.Failed {
                #expect(failed.reason.hasPrefix("line is longer than"))
            } catch {
                // The connection was reset, as it still had unread data.
            }
            #expect(
                await eventually { environment.log.lines.contains { $0.contains("line is longer than 4194304 bytes") } }
            )
            _ = try await other.ask(.rooms(after: nil, limit: 1))
            await #expect(throws: Admin.Failed(reason: "the page size must be 1 to 1000 entries")) {
                try await other.ask(.rooms(after: nil, limit: 1_001))
            }
        }
    }

    @Test("a service that is not hosted cannot be administered, and a closed socket is removed")
    func closing() async throws {
        let folder = try TemporaryFolder()
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), log: nil)
        try await server.start()
        let socket = try AdminSocket.open(on: server, at: folder.path + "/a")
        let admin = Admin(link: try AdminConnection.connect(to: socket.path))
        for (request, service) in [
            (AdminRequest.rooms(after: nil, limit: 1), "rooms"), (.collections(after: nil, limit: 1), "collections"),
            (.export(collection: "a"), "collections"), (.accounts(after: nil, limit: 1), "auth"),
        ] {
            await #expect(throws: Admin.Failed(reason: "the server does not host \(service)")) {
                try await admin.ask(request)
            }
        }
        socket.close()
        #expect(try await admin.link.next(AdminResponse.self) == nil)
        #expect(throws: AdminSocketError.self) { try AdminConnection.connect(to: socket.path) }
        let next = try AdminSocket.open(on: server, at: folder.path + "/a")
        // Closing the previous socket does not remove the next one.
        socket.close()
        _ = try AdminConnection.connect(to: next.path)
        next.close()
        await server.shutdown(drain: .zero)
    }
}
