import SharedState
import Testing
import Trebuchet
import TrebuchetServices
import WebSockets

/// The results of the documentation's tutorials: the files beside this one are links to those of their last steps.
@Suite(.timeLimit(.minutes(5))) struct TutorialTests {
    @Test("one client changes the tutorial's list, and another sees it")
    func shops() async throws {
        let server = try await startShoppingServer(port: 0)
        let port = try #require(server.address).port
        let (shown, continuation) = AsyncStream.makeStream(of: [Item].self)
        async let watching: Void = watchShopping(port: port) { items in
            continuation.yield(items)
            return items.count < 2
        }
        var lists = shown.makeAsyncIterator()
        #expect(await lists.next() == [])
        try await shop(port: port, name: "Milk")
        #expect(await lists.next() == [Item(name: "Milk")])
        try await shop(port: port, name: "Bread")
        #expect(await lists.next() == [Item(name: "Milk"), Item(name: "Bread")])
        try await watching

        let client = TrebuchetClient(transport: .webSocket(port: port))
        try await client.connect()
        let list = try client.resolve(ShoppingList.self, id: "shopping")
        try await list.buy("Milk")
        await #expect(throws: NoSuchItem.self) { try await list.buy("Milk") }
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("the tutorial's client receives its own messages, and is admitted at one path only")
    func echoes() async throws {
        let server = try startEchoServer(port: 0)
        let port = server.address.port
        #expect(try await echo("héllo", port: port) == "héllo")
        await #expect(throws: (any Error).self) {
            _ = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)/") { _ in Echo() }
        }
        await server.shutdown()
    }

    @MainActor
    @Test("two guests of the tutorial's chat see each other and talk")
    func chats() async throws {
        let server = try await startChatServer(port: 0, mailer: ClosureMailer { _, _ in })
        let port = try #require(server.address).port
        func join(_ name: String) async throws -> ChatRoom {
            let backend = TrebuchetBackend(transport: .webSocket(port: port))
            let room = backend.withCurrent { ChatRoom(name: name) }
            try await room.signIn()
            return room
        }
        let ada = try await join("Ada")
        let bob = try await join("Bob")
        #expect(ada.auth.isGuest && bob.auth.isGuest && ada.auth.user != bob.auth.user)
        for await _ in ada.$presence.updates where ada.others == ["Bob"] { break }
        for await _ in bob.$presence.updates where bob.others == ["Ada"] { break }
        try await ada.say("Hello")
        for await lines in bob.$lines.updates where lines.latestEvent?.data == Line(text: "Hello") { break }
        await server.shutdown(drain: .zero)
    }
}
