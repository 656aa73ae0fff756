import SharedState
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@Suite(.timeLimit(.minutes(5))) struct RoomAbuseTests {
    private func connected(_ environment: RoomTestEnvironment) async throws -> RoomTestClient {
        let guest = environment.guest()
        try await guest.client.connect()
        return guest
    }

    @Test("a member cannot be impersonated, neither with a membership id nor with a guessed token")
    func impersonation() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, eve) = (try await connected(environment), try await connected(environment))
            let ticket = try await ada.room().join(
                presence: .object(["name": .string("Ada")]), token: nil, attempt: nil)
            let room = try eve.room()
            for token in [ticket.membershipID, "", String(ticket.token.dropLast()), ticket.token.uppercased()] {
                await #expect(throws: RoomError.unknownToken) {
                    try await room.join(presence: nil, token: token, attempt: nil)
                }
                await #expect(throws: RoomError.unknownToken) { try await room.leave(token: token) }
            }
            await #expect(throws: RoomError.notJoined) { try await room.setPresence(.object([:])) }
            await #expect(throws: RoomError.notJoined) { try await room.patchPresence(.object([:])) }
            await #expect(throws: RoomError.notJoined) { try await room.publish(topic: "emoji", payload: .null) }
            #expect(
                try await ada.room().join(presence: .object(["name": .string("Ada")]), token: nil, attempt: nil)
                    == ticket)
            #expect(try await environment.roster().members.map(\.id) == [ticket.membershipID])
        }
    }

    @Test("a failed join does not count towards a connection's rate of joins")
    func failedJoins() async throws {
        var limits = RoomLimits()
        limits.roomsPerConnection = 2
        try await RoomTestEnvironment.run(limits) { environment in
            let (ada, eve) = (try await connected(environment), try await connected(environment))
            // The room has a member: an empty room would close.
            _ = try await ada.room().join(presence: nil, token: nil, attempt: nil)
            for _ in 0..<5 {
                await #expect(throws: RoomError.unknownToken) {
                    try await eve.room().join(presence: nil, token: "guessed", attempt: nil)
                }
            }
            for name in ["a", "b"] { _ = try await eve.room(name).join(presence: nil, token: nil, attempt: nil) }
            await #expect(throws: RoomError.tooManyRooms(limit: 2)) {
                try await eve.room("c").join(presence: nil, token: nil, attempt: nil)
            }
            // A failed join in a joined room ends nothing.
            await #expect(throws: RoomError.unknownToken) {
                try await eve.room("a").join(presence: nil, token: "guessed", attempt: nil)
            }
            await #expect(throws: RoomError.tooManyRooms(limit: 2)) {
                try await eve.room("d").join(presence: nil, token: nil, attempt: nil)
            }
        }
    }

    @Test("an event may have exactly as many bytes of JSON as the limit, and no more")
    func payloadBytes() async throws {
        var limits = RoomLimits()
        limits.payloadBytes = 100
        try await RoomTestEnvironment.run(limits) { environment in
            let ada = try await connected(environment)
            let room = try ada.room()
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
            // The size includes its quotes.
            _ = try await room.publish(topic: "emoji", payload: .string(String(repeating: "x", count: 98)))
            await #expect(throws: RoomError.payloadTooLarge(bytes: 101, limit: 100)) {
                try await room.publish(topic: "emoji", payload: .string(String(repeating: "x", count: 99)))
            }
        }
    }

    @Test("a connection whose membership was taken over has none any more")
    func takenOver() async throws {
        try await RoomTestEnvironment.run { environment in
            let (old, new) = (try await connected(environment), try await connected(environment))
            let ticket = try await old.room().join(
                presence: .object(["name": .string("Ada")]), token: nil, attempt: nil)
            #expect(
                try await new.room().join(
                    presence: .object(["name": .string("Ada")]), token: ticket.token, attempt: nil) == ticket)
            let room = try old.room()
            await #expect(throws: RoomError.notJoined) { try await room.setPresence(.null) }
            await old.client.close()
            #expect(await eventually { await environment.server.connectionCount == 1 })
            try await new.room().patchPresence(.object(["name": .string("Eva")]))
            #expect(
                await eventually {
                    (try? await environment.roster().members.map(\.data)) == [.object(["name": .string("Eva")])]
                })
        }
    }

    @Test("a presence of 1 MiB is refused, by the client or by the server, and others are unaffected")
    func largePresence() async throws {
        try await RoomTestEnvironment.run { environment in
            let guest = environment.guest()
            let (ada, bob) = (guest.presence("Ada"), environment.guest().presence("Bob"))
            await wait(for: ada) { $0.hasPeers }
            await wait(for: bob) { $0.hasPeers }
            for size in [1 << 20, 300 << 10] {
                let name = String(repeating: "x", count: size)
                let error = await #expect(throws: RoomError.self) { try await ada.update { $0.name = name } }
                guard case .presenceTooLarge(let bytes, _)? = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
                #expect(bytes > size)
            }
            let room = try guest.room()
            await #expect(throws: RoomError.self) {
                try await room.patchPresence(.object(["more": .string(String(repeating: "y", count: 70_000))]))
            }
            #expect(bob.wrappedValue.peersList.map(\.data.name) == ["Ada"])
            try await bob.update { $0.isTyping = true }
            try await ada.update { $0.name = "Ada again" }
            await wait(for: bob) { $0.peers.first?.data.name == "Ada again" }
            await wait(for: ada) { $0.peers.first?.data.isTyping == true }
            #expect(!ada.wrappedValue.isError)
        }
    }

    @Test("a flood of events is refused with a specific error, and affects no others") @MainActor
    func flood() async throws {
        var limits = RoomLimits()
        limits.publishesPerConnection = RateLimit(callsPerSecond: 2, burst: 20)
        try await RoomTestEnvironment.run(limits) { environment in
            let eve = try await connected(environment)
            let (ada, bob) = (environment.guest().emoji(), environment.guest().emoji())
            await wait(for: bob) { $0.isConnected }
            let room = try eve.room()
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
            var refusals = 0
            let begun = ContinuousClock.now
            for number in 1...500 {
                do {
                    try await room.publish(topic: "flood", payload: .integer(Int64(number)))
                } catch let error as RoomError {
                    guard case .rateLimited(let wait) = error, wait > 0 else { throw error }
                    refusals += 1
                }
            }
            let allowed = 20 + Int(2 * ((ContinuousClock.now - begun) / .seconds(1))) + 1
            #expect(refusals >= 500 - allowed, "all but \(allowed)")
            await #expect(throws: RoomError.payloadTooLarge(bytes: 20_002, limit: 16_384)) {
                try await ada.publish(Emoji(name: ""))
                let large = try #require(ada.wrappedValue.sink?.publish(String(repeating: "x", count: 20_000)))
                try await ada.start(.publishing(), until: large.outcome).value
            }
            try await ada.publish(Emoji(name: "calm"))
            await wait(for: bob) { $0.latestEvent?.data.name == "calm" }
            #expect(!bob.wrappedValue.isError)
        }
    }

    @Test("presence updates over the rate are refused; a client waits and ends with its last one")
    func presenceFlood() async throws {
        var limits = RoomLimits()
        limits.presenceUpdatesPerConnection = RateLimit(callsPerSecond: 4, burst: 3)
        try await RoomTestEnvironment.run(limits) { environment in
            let guest = environment.guest()
            let (ada, bob) = (guest.presence("Ada"), environment.guest().presence("Bob"))
            await wait(for: ada) { $0.hasPeers }
            let room = try guest.room()
            let error = await #expect(throws: RoomError.self) {
                for _ in 1...1_000 { try await room.patchPresence(.object([:])) }
            }
            guard case .rateLimited? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            for number in 1...20 { ada.withLock { $0.user.name = "\(number)" } }
            await wait(for: bob) { $0.peers.first?.data.name == "20" }
        }
    }

    @Test("10,000 rooms are created and removed; one connection may be in 100, and a server has a limit")
    func manyRooms() async throws {
        var limits = RoomLimits()
        limits.rooms = 10_000
        limits.reconnectTime = .milliseconds(10)
        try await RoomTestEnvironment.run(limits) { environment in
            let guests = (0..<100).map { _ in RoomTestClient(TrebuchetClient(transport: .local(environment.server))) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, guest) in guests.enumerated() {
                    group.addTask {
                        try await guest.client.connect()
                        for number in 0..<100 {
                            _ = try await guest.room("\(index)-\(number)").join(
                                presence: .object([:]), token: nil, attempt: nil)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(environment.host.roomCount == 10_000)
            let last = try #require(guests.last)
            let shared = try last.room("0-0")
            await #expect(throws: RoomError.tooManyRooms(limit: 100)) {
                try await shared.join(presence: nil, token: nil, attempt: nil)
            }
            let eve = try await connected(environment)
            let another = try eve.room("another")
            await #expect(throws: RoomError.serverFull(limit: 10_000)) {
                try await another.join(presence: nil, token: nil, attempt: nil)
            }
            _ = try await eve.room("0-0").join(presence: nil, token: nil, attempt: nil)
            for guest in guests { await guest.client.close() }
            #expect(await eventually { environment.host.roomCount == 1 })
            _ = try await another.join(presence: nil, token: nil, attempt: nil)
        }
    }

    @Test("a room that is never joined is removed: immediately after a refused call, otherwise after a time")
    func unjoined() async throws {
        var limits = RoomLimits()
        limits.unjoinedRoomTime = .milliseconds(50)
        try await RoomTestEnvironment.run(limits) { environment in
            let guest = try await connected(environment)
            let room = try guest.room("empty")
            await #expect(throws: RoomError.notJoined) { try await room.setPresence(nil) }
            #expect(await eventually { environment.host.roomCount == 0 })
            let rosters = try await guest.room("watched").observeRoster()
            for await _ in rosters {}
            guard case .failed(let error)? = rosters.outcome else {
                Issue.record("the stream should have failed")
                return
            }
            #expect(error.message.contains("not in the room"))
            #expect(await eventually { environment.host.roomCount == 0 })
            let long = try guest.room(String(repeating: "x", count: 300))
            let refusal = await #expect(throws: TrebuchetError.self) {
                try await long.join(presence: nil, token: nil, attempt: nil)
            }
            #expect(refusal?.code == .invalidArguments && refusal?.message.contains("256 bytes") == true)
        }
    }

    @Test("rooms with observers and without members do not count towards the limit")
    func watched() async throws {
        var limits = RoomLimits()
        limits.unjoinedRoomTime = .seconds(3_600)
        limits.rooms = 4
        try await RoomTestEnvironment.run(limits) { environment in
            let guest = try await connected(environment)
            for number in 0..<4 {
                let rosters = try await guest.room("watched\(number)").observeRoster()
                for await _ in rosters {}
            }
            #expect(await eventually { environment.host.roomCount == 0 })
            _ = try await guest.room("joined").join(presence: nil, token: nil, attempt: nil)
        }
    }

    @Test("a full room refuses members, and accepts them when there is room again")
    func fullRoom() async throws {
        var limits = RoomLimits()
        limits.membersPerRoom = 1
        try await RoomTestEnvironment.run(limits) { environment in
            var ada: Shared<RoomPresence<ChatPresence>>? = environment.guest().presence("Ada")
            await wait(for: try #require(ada)) { $0.isConnected }
            let bob = environment.guest().presence("Bob")
            await wait(for: bob) { $0.error as? RoomError == .roomFull(limit: 1) }
            #expect(!bob.wrappedValue.isLoading)
            ada = nil
            await wait(for: bob) { $0.isConnected && !$0.isError }
        }
    }

    @Test("a server without caller identification refuses joins with the reason")
    func unknownCaller() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        RoomHost.expose(on: server)
        let guest = RoomTestClient(TrebuchetClient(transport: .local(server)))
        try await guest.client.connect()
        let room = try guest.room()
        await #expect(throws: RoomError.unknownCaller) { try await room.join(presence: nil, token: nil, attempt: nil) }
        await guest.client.close()
        await server.shutdown(drain: .zero)
    }
}
