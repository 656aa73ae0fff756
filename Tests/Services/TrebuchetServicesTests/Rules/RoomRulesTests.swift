import Relays
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices

/// Rules of rooms at a server, as clients experience them.
@Suite(.timeLimit(.minutes(5))) struct RoomRulesTests {
    private func book(_ text: String) throws -> RulesFile { try RulesFile(json: Array(text.utf8)) }

    @Test(
        "rooms of a type are joined, listed and published to by users allowed in the file, up to its limit of members"
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
        try await RoomTestEnvironment.run(rules: rules) { environment in
            var guests: [RoomTestClient] = []
            for _ in 1...3 {
                let guest = environment.guest()
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

            environment.host.replaceRules(try book(#"{"rooms":{"chat":{"members":3}}}"#))
            _ = try await guests[2].room().join(presence: nil, token: nil, attempt: nil)
            try await guests[0].room().publish(topic: "t", payload: .null)
            await #expect(throws: RoomError.forbidden) { try await list.list(after: nil, limit: nil) }
        }
    }

    @Test("a member who loses the required role leaves the room, with its streams; one who keeps it stays")
    func lostRole() async throws {
        let rules = try book(#"{"roles":["editor"],"rooms":{"chat":{"join":"editor"}}}"#)
        try await RoomTestEnvironment.run(rules: rules) { environment in
            await environment.server.expose(
                RulesTestServer(actorSystem: environment.server.actorSystem), as: RulesTestServer.name)
            let (ed, eve) = (environment.guest(), environment.guest())
            for (guest, name) in [(ed, "ed"), (eve, "eve")] {
                try await guest.client.connect()
                try await guest.client.resolve(RulesTestServer.self, id: RulesTestServer.name).become(name, ["editor"])
                _ = try await guest.room().join(presence: nil, token: nil, attempt: nil)
            }
            let isOver = StateRelay(false)
            let room = try eve.room()
            let reading = Task {
                defer { isOver.update { $0 = true } }
                for try await _ in await room.observeEvents() {}
            }
            defer { reading.cancel() }
            try await eve.client.resolve(RulesTestServer.self, id: RulesTestServer.name).become(
                "eve", ["editor", "user"])
            try await eve.room().publish(topic: "t", payload: .null)
            try await eve.client.resolve(RulesTestServer.self, id: RulesTestServer.name).become("eve", ["user"])
            #expect(await eventually { isOver.currentValue })
            await #expect(throws: RoomError.notJoined) {
                try await eve.room().history(topic: nil, after: nil, limit: nil)
            }
            await #expect(throws: RoomError.forbidden) {
                try await eve.room().join(presence: nil, token: nil, attempt: nil)
            }
            try await ed.room().publish(topic: "t", payload: .null)
        }
    }
}
