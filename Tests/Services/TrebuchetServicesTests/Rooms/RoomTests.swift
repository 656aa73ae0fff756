import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@Suite(.timeLimit(.minutes(5))) struct RoomTests {
    @Test("a value connects, and then shows an empty room and its own presence")
    func alone() async throws {
        try await RoomTestEnvironment.run { environment in
            let ada = environment.guest().presence("Ada")
            #expect(ada.wrappedValue.isLoading)
            await wait(for: ada) { $0.isConnected && !$0.isLoading }
            #expect(
                ada.wrappedValue
                    == RoomPresence(user: ChatPresence(name: "Ada"), isLoading: false, isConnected: true))
        }
    }

    @Test("two clients see each other, and each sees its own changes immediately")
    func twoClients() async throws {
        try await RoomTestEnvironment.run { environment in
            let ada = environment.guest().presence("Ada")
            let bob = environment.guest().presence("Bob")
            await wait(for: ada) { $0.peersList.map(\.data.name) == ["Bob"] }
            await wait(for: bob) { $0.peersList.map(\.data.name) == ["Ada"] }
            #expect(ada.wrappedValue.totalCount == 2)
            ada.withLock { $0.user.isTyping = true }
            #expect(ada.wrappedValue.user.isTyping)
            await wait(for: bob) { $0.peers.first?.data.isTyping == true }
            try await ada.update { $0.isTyping = false }
            await wait(for: bob) { $0.peers.first?.data.isTyping == false }
            let shown = try await environment.roster().members.map(\.data)
            #expect(try shown.map { try $0.value.decode(ChatPresence.self) }.contains(ChatPresence(name: "Ada")))
        }
    }

    @Test("many successive changes end with the last one")
    func rapid() async throws {
        try await RoomTestEnvironment.run { environment in
            let ada = environment.guest().presence("Ada")
            let bob = environment.guest().presence("Bob")
            for number in 1...500 { ada.withLock { $0.user.name = "\(number)" } }
            await wait(for: bob) { $0.peers.first?.data.name == "500" }
            #expect(ada.wrappedValue.user.name == "500" && !ada.wrappedValue.isError)
        }
    }

    @Test("the roster is read only while a value shows it, and again for a later value")
    func rosterReader() async throws {
        try await RoomTestEnvironment.run { environment in
            let guest = environment.guest()
            let bob = environment.guest().presence("Bob")
            let channel = guest.emoji()
            await wait(for: channel) { $0.isConnected }
            await wait(for: bob) { $0.isConnected }
            // The events of one client, and the roster of the other.
            #expect(await eventually { await environment.server.counters().streams == 2 })
            for _ in 0..<2 {
                var presence: Shared<RoomPresence<ChatPresence>>? = guest.presence("Ada")
                await wait(for: try #require(presence)) { $0.peers.first?.data.name == "Bob" }
                #expect(await eventually { await environment.server.counters().streams == 3 })
                presence = nil
                #expect(await eventually { await environment.server.counters().streams == 2 })
            }
        }
    }

    @Test("values with one key share one membership; the client leaves with the last of presence and topics")
    func oneJoin() async throws {
        try await RoomTestEnvironment.run { environment in
            let guest = environment.guest()
            let bob = environment.guest().presence("Bob")
            var first: Shared<RoomPresence<ChatPresence>>? = guest.presence("Ada")
            var second: Shared<RoomPresence<ChatPresence>>? = guest.presence("ignored")
            var channel: Shared<TopicChannel<Emoji>>? = guest.emoji()
            first?.withLock { $0.user.isTyping = true }
            #expect(second?.wrappedValue.user == ChatPresence(name: "Ada", isTyping: true))
            await wait(for: try #require(channel)) { $0.isConnected }
            await wait(for: bob) { $0.peersList.map(\.data) == [ChatPresence(name: "Ada", isTyping: true)] }
            #expect(try await environment.roster().members.count == 2)
            let joined = try #require(guest.backend.rooms.room("rooms/chat-lobby"))
            first = nil
            #expect(joined.isUsed)
            second = nil
            await wait(for: bob) { !$0.hasPeers }
            #expect(joined.isUsed, "the room's topic is still in use")
            channel = nil
            #expect(await eventually { guest.backend.rooms.room("rooms/chat-lobby") == nil })
        }
    }

    @Test("a leaving member disappears immediately, and the room with the last one")
    func leave() async throws {
        try await RoomTestEnvironment.run { environment in
            let clock = ContinuousClock()
            var ada: Shared<RoomPresence<ChatPresence>>? = environment.guest().presence("Ada")
            var bob: Shared<RoomPresence<ChatPresence>>? = environment.guest().presence("Bob")
            await wait(for: try #require(bob)) { $0.hasPeers }
            let start = clock.now
            ada = nil
            await wait(for: try #require(bob)) { !$0.hasPeers }
            #expect(clock.now - start < environment.host.limits.reconnectTime / 2)
            bob = nil
            #expect(await eventually { environment.host.roomCount == 0 })
            _ = (ada, bob)
        }
    }

    @Test(
        "a member with a presence of another type is left out and reported, and one that only uses a topic is left out"
    )
    func otherTypes() async throws {
        let reports = Journal()
        try await RoomTestEnvironment.run { environment in
            let ada = environment.guest { reports.record("\($0)") }.presence("Ada")
            let other = environment.guest()
            try await other.client.connect()
            _ = try await other.room().join(presence: .object(["x": .integer(1)]), token: nil, attempt: nil)
            let listener = environment.guest().emoji()
            await wait(for: listener) { $0.isConnected }
            let bob = environment.guest().presence("Bob")
            await wait(for: ada) { $0.hasPeers }
            await wait(for: bob) { $0.hasPeers }
            #expect(ada.wrappedValue.peersList.map(\.data.name) == ["Bob"])
            #expect(bob.wrappedValue.peersList.map(\.data.name) == ["Ada"])
            await reports.wait { !$0.isEmpty }
            #expect(reports.entries.count == 1)
            let report = reports.entries[0]
            #expect(report.contains("of room 'rooms/chat-lobby' does not decode as ChatPresence"), "\(report)")
            #expect(report.contains("'name'"), "\(report)")
        }
    }
}
