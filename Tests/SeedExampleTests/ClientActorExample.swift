import Foundation
import Testing
import Trebuchet

@Trebuchet
distributed actor ChatMember {
    let name: String
    private let show: @Sendable (String) -> Void

    init(name: String, actorSystem: TrebuchetActorSystem, show: @escaping @Sendable (String) -> Void) {
        self.name = name
        self.show = show
        self.actorSystem = actorSystem
    }

    /// Called by the room. What it returns, the room gets.
    distributed func hear(_ text: String, from sender: String) -> Bool {
        show("\(sender): \(text)")
        return true
    }
}

@Trebuchet
distributed actor ChatRoom {
    private var members: [String: ChatMember] = [:]

    /// Who comes again under the same name takes the place of the one before.
    distributed func join(_ member: ChatMember, as name: String) -> [String] {
        members[name] = member
        return members.keys.sorted()
    }

    distributed func leave(_ name: String) { members[name] = nil }

    /// Tells all members at once, and returns how many have heard it.
    distributed func say(_ text: String, from sender: String) async -> Int {
        await withTaskGroup(of: (name: String, member: ChatMember, heard: Bool?).self) { group in
            for (name, member) in members {
                group.addTask { (name, member, await Self.tell(member, text, from: sender)) }
            }
            var count = 0
            for await (name, member, heard) in group {
                if heard == true { count += 1 }
                // Unless it has come again meanwhile.
                if heard == nil, members[name] == member { members[name] = nil }
            }
            return count
        }
    }

    /// Whether the member has heard it; nil when it is not there any more.
    private static func tell(_ member: ChatMember, _ text: String, from sender: String) async -> Bool? {
        do {
            return try await withDeadline(.seconds(5)) { try await member.hear(text, from: sender) }
        } catch let error as TrebuchetError where [.unavailable, .actorNotFound].contains(error.code) {
            return nil
        } catch {
            // Too slow, or its connection broke: it may hear what comes next.
            return false
        }
    }
}

struct ChatMemberApp {
    let client: TrebuchetClient
    let room: ChatRoom
    let member: ChatMember

    /// Joins, and joins again whenever the client has a new connection: after a long absence, or at a server that was started
    /// anew, the room knows nothing of the member.
    static func join(
        _ name: String, over transport: TrebuchetTransport, show: @escaping @Sendable (String) -> Void
    ) async throws -> ChatMemberApp {
        let client = TrebuchetClient(transport: transport)
        try await client.connect()
        let room = try client.resolve(ChatRoom.self, id: "room")
        let member = ChatMember(name: name, actorSystem: client.actorSystem, show: show)
        _ = try await room.join(member, as: name)
        Task {
            for await state in client.connectionState.stream {
                if state == .connected { _ = try? await room.join(member, as: name) }
                if state == .closed { break }
            }
        }
        return ChatMemberApp(client: client, room: room, member: member)
    }
}

@Suite(.timeLimit(.minutes(5))) struct ClientActorExample {
    @Test(
        "the members of the chat that Docs/ClientActors.md shows hear what is said, and one who has gone is forgotten")
    func chat() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(ChatRoom(actorSystem: server.actorSystem), as: "room")
        let address = try await server.start()
        let transport = TrebuchetTransport.webSocket(host: address.host, port: address.port)
        let (heardByAda, ada) = AsyncStream<String>.makeStream()
        let (heardByBob, bob) = AsyncStream<String>.makeStream()
        let first = try await ChatMemberApp.join("Ada", over: transport) { ada.yield($0) }
        let second = try await ChatMemberApp.join("Bob", over: transport) { bob.yield($0) }
        #expect(try await first.room.say("Hello", from: "Ada") == 2)
        for await text in heardByAda {
            #expect(text == "Ada: Hello")
            break
        }
        for await text in heardByBob {
            #expect(text == "Ada: Hello")
            break
        }
        await second.client.close()
        #expect(try await first.room.say("Are you there?", from: "Ada") == 1)
        #expect(try await first.room.join(first.member, as: "Ada") == ["Ada"])
        await first.client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("the page shows the chat that is tested here")
    func page() throws {
        let file = URL(filePath: #filePath)
        let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "Docs/ClientActors.md"), encoding: .utf8)
        let source = try String(contentsOf: file, encoding: .utf8)
        let parts = source.matches(of: /(?ms)^(?:@Trebuchet\ndistributed actor|struct ChatMemberApp) .*?^\}/)
        #expect(parts.count == 3)
        for part in parts { #expect(page.contains(part.output)) }
    }
}
