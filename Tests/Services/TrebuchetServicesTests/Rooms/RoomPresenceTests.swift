import Foundation
import SharedState
import Testing

@testable import TrebuchetServices

@Suite struct RoomPresenceTests {
    private let ada = ChatPresence(name: "Ada")

    @Test("a new presence has no peers and is loading")
    func creation() {
        let presence = RoomPresence(user: ada)
        #expect(presence.totalCount == 1)
        #expect(!presence.hasPeers)
        #expect(presence.isLoading && !presence.isConnected && !presence.isError)
    }

    @Test("with two peers the number of members is three")
    func peers() {
        let peers = [Peer(id: "1", data: ChatPresence(name: "Bob")), Peer(id: "2", data: ChatPresence(name: "Eve"))]
        let presence = RoomPresence(user: ada, peers: IdentifiedArrayOf(uniqueElements: peers))
        #expect(presence.totalCount == 3)
        #expect(presence.hasPeers)
        #expect(presence.peersList == peers)
    }

    @Test("presences are equal when all their parts are, errors when their texts are; peers when their ids are too")
    func equality() {
        var one = RoomPresence(user: ada)
        let other = RoomPresence(user: ada)
        #expect(one == other)
        one.error = RoomError.notJoined
        #expect(one != other)
        one.error = nil
        one.isConnected = true
        #expect(one != other)
        #expect(Peer(id: "1", data: ada) == Peer(id: "1", data: ada))
        #expect(Peer(id: "1", data: ada) != Peer(id: "2", data: ada))
    }

    @Test("keys of rooms are equal by their types, those of values by room, regardless of the initial presence")
    func keys() {
        #expect(RoomKey<ChatPresence>(type: "chat") == Schema.Rooms.chat)
        #expect(RoomKey<ChatPresence>(type: "game") != Schema.Rooms.chat)
        typealias Key = RoomPresenceKey<ChatPresence>
        let key: Key.Default = .trebuchetPresence(Schema.Rooms.chat, roomId: "1", initialPresence: ada)
        let same: Key.Default = .instantPresence(
            roomType: "chat", roomId: "1", initialPresence: ChatPresence(name: "Bob"))
        let other: Key.Default = .instantPresence(Schema.Rooms.chat, roomId: "2", initialPresence: ada)
        #expect(key.id == same.id)
        #expect(key.id != other.id)
    }

    @Test("without a backend the value has an error, and saving fails")
    func noBackend() async {
        let store = SharedStore()
        let presence = Shared(
            .trebuchetPresence(Schema.Rooms.chat, roomId: "1", initialPresence: ada), store: store)
        #expect(presence.wrappedValue.error as? RoomError == .noBackend)
        #expect(!presence.wrappedValue.isLoading)
        await #expect(throws: RoomError.noBackend) { try await presence.update { $0.isTyping = true } }
    }
}
