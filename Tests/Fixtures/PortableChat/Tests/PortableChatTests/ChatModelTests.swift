import PortableChat
import SharedState
import Testing
import TrebuchetClient
import TrebuchetServicesClient

/// A chat's view model over a transport without the package's sockets: its client runs on a Dispatch queue.
@MainActor @Suite(.timeLimit(.minutes(1))) struct ChatModelTests {
    private func chat(_ name: String, _ server: ChatServer) -> (ChatModel, TrebuchetBackend) {
        let backend = TrebuchetBackend(transport: server)
        let model = SharedStore.$current.withValue(SharedStore()) { backend.withCurrent { ChatModel(name: name) } }
        return (model, backend)
    }

    @Test("two guests sign in, see each other, and read each other's messages and waves")
    func conversation() async throws {
        let server = ChatServer()
        let (ada, adaBackend) = chat("Ada", server)
        let (bob, bobBackend) = chat("Bob", server)
        try await ada.signIn()
        try await bob.signIn()
        #expect(ada.auth.user?.isGuest == true)
        #expect(ada.auth.user?.id != bob.auth.user?.id)

        for await presence in ada.$presence.updates where presence.peers.count == 1 { break }
        for await presence in bob.$presence.updates where presence.peers.count == 1 { break }
        #expect(ada.others == ["Bob"])
        #expect(bob.others == ["Ada"])
        bob.setTyping(true)
        for await presence in ada.$presence.updates where presence.peers.first?.data.isTyping == true { break }

        ada.send("Hello")
        // Shown before the server has it.
        #expect(ada.lines == ["Ada: Hello"])
        for await messages in bob.$messages.updates where messages.items.count == 1 { break }
        bob.send("Hi")
        for await messages in ada.$messages.updates where messages.items.count == 2 && !messages.isSyncing { break }
        #expect(ada.lines == ["Ada: Hello", "Bob: Hi"])

        for await waves in bob.$waves.updates where waves.isConnected { break }
        try await ada.wave()
        for await waves in bob.$waves.updates where waves.hasEvent { break }
        #expect(bob.waves.latestEvent?.data.from == "Ada")

        await adaBackend.leaveAllRooms()
        for await presence in bob.$presence.updates where presence.peers.isEmpty { break }
        await adaBackend.close()
        await bobBackend.close()
    }

    @Test("a backend over the system's WebSockets is made without a connection")
    func system() {
        let backend = TrebuchetBackend.chat(at: "wss://chat.example.com")
        #expect(backend.client.connectionState.currentValue == .disconnected(nil))
    }
}
