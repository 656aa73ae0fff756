import Foundation
import TestSupport
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

    /// Called by the room, which receives the result.
    distributed func receive(_ text: String, from sender: String) -> Bool {
        show("\(sender): \(text)")
        return true
    }
}

@Trebuchet
distributed actor ChatRoom {
    private var members: [String: ChatMember] = [:]

    /// A member that joins again under the same name replaces the earlier one.
    distributed func join(_ member: ChatMember, as name: String) -> [String] {
        members[name] = member
        return members.keys.sorted()
    }

    distributed func leave(_ name: String) { members[name] = nil }

    /// Sends the text to all members in parallel, and returns how many received it.
    distributed func say(_ text: String, from sender: String) async -> Int {
        await withTaskGroup(of: (name: String, member: ChatMember, received: Bool?).self) { group in
            for (name, member) in members {
                group.addTask { (name, member, await Self.send(text, from: sender, to: member)) }
            }
            var count = 0
            for await (name, member, received) in group {
                if received == true { count += 1 }
                // Unless the member has joined again in the meantime.
                if received == nil, members[name] == member { members[name] = nil }
            }
            return count
        }
    }

    /// Whether the member received the text; nil if its client is gone.
    private static func send(_ text: String, from sender: String, to member: ChatMember) async -> Bool? {
        do {
            return try await withDeadline(.seconds(5)) { try await member.receive(text, from: sender) }
        } catch let error as TrebuchetError where [.unavailable, .actorNotFound].contains(error.code) {
            return nil
        } catch {
            // Too slow, or the connection was lost: the member may receive the next text.
            return false
        }
    }
}

struct ChatMemberApp {
    let client: TrebuchetClient
    let room: ChatRoom
    let member: ChatMember

    /// Joins, and joins again over each new connection: a room that was restarted has lost the member.
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
    @Test("members of the chat in Docs/Guides/Client.md receive messages; the room removes a disconnected member")
    func chat() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(ChatRoom(actorSystem: server.actorSystem), as: "room")
        let address = try await server.start()
        let transport = TrebuchetTransport.webSocket(host: address.host, port: address.port)
        let (receivedByAda, ada) = AsyncStream<String>.makeStream()
        let (receivedByBob, bob) = AsyncStream<String>.makeStream()
        let first = try await ChatMemberApp.join("Ada", over: transport) { ada.yield($0) }
        let second = try await ChatMemberApp.join("Bob", over: transport) { bob.yield($0) }
        #expect(try await first.room.say("Hello", from: "Ada") == 2)
        for await text in receivedByAda {
            #expect(text == "Ada: Hello")
            break
        }
        for await text in receivedByBob {
            #expect(text == "Ada: Hello")
            break
        }
        await second.client.close()
        #expect(try await first.room.say("Are you there?", from: "Ada") == 1)
        #expect(try await first.room.join(first.member, as: "Ada") == ["Ada"])
        await first.client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("the page shows the chat member that is tested here, and the lines that use it")
    func page() throws {
        let file = URL(filePath: #filePath)
        let root = packageRoot
        let page = try String(contentsOf: root.appending(path: "Docs/Guides/Client.md"), encoding: .utf8)
        let source = try String(contentsOf: file, encoding: .utf8)
        let member = try #require(source.firstMatch(of: /(?ms)^@Trebuchet\ndistributed actor ChatMember .*?^\}/))
        #expect(page.contains(member.output))
        let section = try #require(page.components(separatedBy: "## Actors in the client").last)
        let lines = section.matches(of: /\n    (\S.*)/).map(\.output.1).filter { source.contains($0) }
        #expect(lines.filter { $0.contains("member") }.count == 3)
        #expect(page.contains("(../../Tests/Project/DocumentationSnippetTests/ClientActorExample.swift)"))
    }
}
