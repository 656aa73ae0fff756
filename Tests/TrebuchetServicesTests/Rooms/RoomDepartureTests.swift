import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// Clients that leave rooms, are sent out of them, or may not join them yet.
@Suite("Clients that leave rooms", .timeLimit(.minutes(1))) struct RoomDepartureTests {
    @Test("a client leaves all of its rooms at once, also those that values show")
    func leavesAll() async throws {
        try await RoomWorld.run { world in
            let (ada, bob) = (world.guest(), world.guest())
            let lobbies = (ada.presence("Ada"), bob.presence("Bob"))
            let (hall, emoji) = (ada.presence("Ada", in: "hall"), ada.emoji(in: "hall"))
            await wait(for: lobbies.0) { $0.peers.count == 1 }
            await wait(for: hall) { $0.isConnected }
            await wait(for: emoji) { $0.isConnected }
            await ada.backend.leaveRooms(within: .seconds(600))
            await wait(for: lobbies.1) { $0.peers.isEmpty }
            #expect(world.host.room("rooms/chat-hall") == nil)
            for shown in [lobbies.0, hall] {
                await wait(for: shown) { $0.error as? RoomError == .left && !$0.isConnected && $0.peers.isEmpty }
            }
            await #expect(throws: RoomError.left) { try await hall.update { $0.isTyping = true } }
            await #expect(throws: RoomError.notJoined) { try await emoji.publish(Emoji(name: "tada")) }
            // Whoever makes a value anew joins again.
            let again = Guest(ada.backend)
            let back = again.presence("Ada")
            await wait(for: lobbies.1) { $0.peers.count == 1 }
            await wait(for: back) { $0.isConnected && $0.error == nil }
            _ = (lobbies, hall, emoji)
        }
    }
}
