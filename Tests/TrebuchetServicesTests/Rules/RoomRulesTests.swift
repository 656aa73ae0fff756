import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// Rules of rooms at a server, as clients meet them.
@Suite(.timeLimit(.minutes(1))) struct RoomRulesTests {
    private func book(_ text: String) throws -> RuleBook { try RuleBook(json: Array(text.utf8)) }

    @Test(
        "rooms of a type are joined, listed and published to by whom the file says, and have the members that it allows"
    )
    func rooms() async throws {
        let rules = try book(
            #"""
            {"rooms": {
              "*": {"join": "nobody"},
              "chat": {"join": "anyone", "list": "anyone", "publish": "user", "members": 2},
              "chat-secret": {"list": "nobody"}
            }}
            """#)
        try await RoomWorld.run(rules: rules) { world in
            var guests: [Guest] = []
            for _ in 1...3 {
                let guest = world.guest()
                try await guest.client.connect()
                guests.append(guest)
            }
            for guest in guests[..<2] {
                for room in ["lobby", "secret-1"] {
                    _ = try await guest.room(room).join(presence: nil, token: nil, attempt: nil)
                }
            }
            await #expect(throws: RoomError.roomFull(limit: 2)) {
                try await guests[2].room().join(presence: nil, token: nil, attempt: nil)
            }
            let other = try guests[2].client.resolve(Room.self, id: "rooms/game-1")
            await #expect(throws: RoomError.forbidden) {
                try await other.join(presence: nil, token: nil, attempt: nil)
            }
            await #expect(throws: RoomError.forbidden) {
                try await guests[0].room().publish(topic: "t", payload: .null)
            }
            let list = try guests[2].client.resolve(RoomList.self, id: "room-lists/chat")
            #expect(try await list.list(after: nil, limit: nil) == [RoomSummary(name: "chat-lobby", members: 2)])
            let secret = try guests[2].client.resolve(RoomList.self, id: "room-lists/chat-secret")
            await #expect(throws: RoomError.forbidden) { try await secret.list(after: nil, limit: nil) }

            world.host.use(try book(#"{"rooms":{"chat":{"members":3}}}"#))
            _ = try await guests[2].room().join(presence: nil, token: nil, attempt: nil)
            try await guests[0].room().publish(topic: "t", payload: .null)
            await #expect(throws: RoomError.forbidden) { try await list.list(after: nil, limit: nil) }
        }
    }
}
