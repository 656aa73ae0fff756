import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

@Suite(.timeLimit(.minutes(5))) struct TopicTests {
    @Test("an event published by one client is received by the others in order, and not by its publisher") @MainActor
    func publish() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest().emoji(), environment.guest().emoji())
            await wait(for: bob) { $0.isConnected }
            var settled: [String] = []
            for number in 1...30 {
                ada.publish(
                    Emoji(name: "\(number)"), onSuccess: { settled.append("success") },
                    onSettled: { _ in settled.append("settled") })
            }
            #expect(ada.wrappedValue.isPublishing)
            await wait(for: bob) { $0.latestEvent?.data.name == "30" }
            #expect(bob.wrappedValue.events.map(\.data.name) == (1...30).map { "\($0)" })
            #expect(Set(bob.wrappedValue.events.map(\.peerId)).count == 1)
            await wait(for: ada) { $0.publishStatus == .success }
            #expect(settled == Array(repeating: ["success", "settled"], count: 30).flatMap { $0 })
            #expect(ada.wrappedValue.events == [])
            try await bob.publish(Emoji(name: "back"))
            await wait(for: ada) { $0.events.map(\.data.name) == ["back"] }
            #expect(bob.wrappedValue.events.count == 30)
        }
    }

    @Test("an event published after others see a member reaches that member, however late its event stream starts")
    func lateStream() async throws {
        let mayObserve = Atomic(false)
        try await RoomTestEnvironment.run(mayCall: { _, _, target in
            target != "observeEvents" || mayObserve.load(ordering: .relaxed)
        }) { environment in
            let guest = environment.guest()
            let (bob, emoji) = (guest.presence("Bob"), guest.emoji())
            let ada = environment.guest()
            try await ada.client.connect()
            let room = try ada.room()
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
            for await roster in await room.observeRoster() where !roster.members.isEmpty { break }
            try await room.publish(topic: "emoji", payload: .object(["name": .string("tada")]))
            mayObserve.store(true, ordering: .relaxed)
            await wait(for: emoji) { $0.isConnected && $0.hasEvent }
            #expect(emoji.wrappedValue.events.map(\.data.name) == ["tada"])
            _ = bob
        }
    }

    @Test("topics of a room are separate; presences and topics share the membership")
    func topics() async throws {
        try await RoomTestEnvironment.run { environment in
            let guest = environment.guest()
            let ada = guest.presence("Ada")
            let reports = Mutex<[UndecodableValue]>([])
            let (emoji, bob) = (
                guest.emoji(), environment.guest { value in reports.withLock { $0.append(value) } }.emoji()
            )
            let carol = environment.guest()
            let room = try carol.room()
            try await carol.client.connect()
            let stay = try await room.join(presence: nil, token: nil, attempt: nil).membershipID
            await wait(for: emoji) { $0.isConnected }
            await wait(for: bob) { $0.isConnected }
            try await room.publish(topic: "other", payload: .object(["name": .string("no")]))
            try await room.publish(topic: "emoji", payload: .integer(1))
            try await room.publish(topic: "emoji", payload: .object(["name": .string("yes")]))
            await wait(for: emoji) { $0.hasEvent }
            await wait(for: bob) { $0.hasEvent }
            #expect(bob.wrappedValue.events.map(\.data.name) == ["yes"])
            #expect(bob.wrappedValue.latestEvent?.peerId == stay)
            let reported = reports.withLock { $0 }
            #expect(reported.map(\.stream) == ["emoji"] && reported.map(\.kind) == [.event])
            let text = reported.first?.error.message ?? ""
            #expect(text.hasPrefix("event of topic 'emoji' of member '\(stay)' of room 'rooms/chat-lobby'"), "\(text)")
            try await emoji.publish(Emoji(name: "mine"))
            await wait(for: bob) { $0.events.count == 2 }
            let peer = bob.wrappedValue.latestEvent?.peerId
            #expect(await eventually { (try? await environment.roster().members.first?.id) == peer })
            _ = ada
        }
    }

    @Test("a room keeps its last events for its members, over all topics and for one")
    func history() async throws {
        var limits = RoomLimits()
        limits.historyEvents = 6
        try await RoomTestEnvironment.run(limits) { environment in
            let guest = environment.guest()
            try await guest.client.connect()
            let room = try guest.room()
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
            let stranger = environment.guest()
            try await stranger.client.connect()
            let unjoined = try stranger.room()
            await #expect(throws: RoomError.notJoined) {
                try await unjoined.history(topic: nil, after: nil, limit: nil)
            }
            for number in 1...8 {
                try await room.publish(topic: number % 2 == 0 ? "even" : "odd", payload: .integer(Int64(number)))
            }
            let all = try await room.history(topic: nil, after: nil, limit: nil)
            #expect(all.map(\.number) == [3, 4, 5, 6, 7, 8])
            #expect(try await room.history(topic: "even", after: 4, limit: nil).map(\.number) == [6, 8])
            #expect(try await room.history(topic: nil, after: nil, limit: 2).map(\.number) == [7, 8])
        }
    }

    @Test(
        "events that left the window before they were seen are fetched, and only those dropped by the room are missed")
    func gaps() async throws {
        var limits = RoomLimits()
        limits.publishesPerConnection = RateLimit(callsPerSecond: 1_000, burst: 10_000)
        limits.historyEvents = 200
        // However long the publishing takes: Bob's membership must survive.
        limits.reconnectTime = .seconds(600)
        try await RoomTestEnvironment.run(limits) { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let bob = environment.guest(through: link).emoji()
            let ada = environment.guest()
            try await ada.client.connect()
            let room = try ada.room()
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
            await wait(for: bob) { $0.isConnected }
            bob.withLock { $0.maxEvents = 1_000 }
            for count in [150, 450] {
                let before = bob.wrappedValue.events.count
                try await link.refuseConnections {
                    await link.disconnectAll()
                    for number in 1...count {
                        try await room.publish(
                            topic: "emoji", payload: .object(["name": .string("\(before)-\(number)")]))
                    }
                }
                await wait(for: bob) { $0.latestEvent?.data.name == "\(before)-\(count)" }
                if count == 150 {
                    #expect(bob.wrappedValue.events.map(\.data.name) == (1...150).map { "0-\($0)" })
                } else {
                    await wait(for: bob) { $0.error as? RoomError == .eventsMissed(count: 250) }
                    #expect(bob.wrappedValue.events.count == 350 && bob.wrappedValue.missedCount == 250)
                }
            }
            await link.close()
        }
    }

    @Test("a member that was away learns that the room has ended meanwhile, and receives the events of the new one")
    func restarted() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(50)
        try await RoomTestEnvironment.run(limits) { environment in
            let link = try FaultyLink(to: environment.address, seed: 2)
            let bob = environment.guest(through: link).emoji()
            await wait(for: bob) { $0.isConnected }
            let ada = environment.guest()
            try await link.refuseConnections {
                await link.disconnectAll()
                #expect(await eventually { environment.host.roomCount == 0 })
                try await ada.client.connect()
                let room = try ada.room()
                _ = try await room.join(presence: nil, token: nil, attempt: nil)
                try await room.publish(topic: "emoji", payload: .object(["name": .string("new")]))
            }
            await wait(for: bob) { $0.latestEvent?.data.name == "new" }
            #expect(bob.wrappedValue.restarts == 1 && bob.wrappedValue.missedCount == 0)
            await link.disconnectAll()
            await wait(for: bob) { !$0.isConnected }
            await wait(for: bob) { $0.isConnected }
            #expect(bob.wrappedValue.restarts == 1, "the room was there all the time")
            await link.close()
        }
    }

    @Test("a publish before the room is joined waits for it") @MainActor
    func early() async throws {
        try await RoomTestEnvironment.run { environment in
            let bob = environment.guest().emoji()
            await wait(for: bob) { $0.isConnected }
            let ada = environment.guest().emoji()
            try await ada.publish(Emoji(name: "first"))
            await wait(for: bob) { $0.events.map(\.data.name) == ["first"] }
        }
    }

    @Test(
        "a publish without a server fails in time, one over the limit fails immediately, and closing the client fails all"
    )
    @MainActor
    func noServer() async throws {
        var options = TrebuchetClient.Options()
        // Longer than 257 calls take: otherwise the first ones make room before the last one.
        options.callTimeout = .seconds(2)
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: 1), options: options)
        let channel = RoomTestClient(client).emoji()
        let calls = (1...257).map { channel.publish(Emoji(name: "\($0)")) }
        await #expect(throws: RoomError.tooManyWaiting(limit: 256)) { try await calls[256].value }
        for call in calls.dropLast() { await #expect(throws: TrebuchetError.self) { try await call.value } }
        let error = await #expect(throws: TrebuchetError.self) { try await channel.publish(Emoji(name: "x")) }
        #expect(error?.code == .timeout)
        await client.close()
        await wait(for: channel) { ($0.error as? TransportError)?.code == .closed }
        await #expect(throws: TransportError.self) { try await channel.publish(Emoji(name: "y")) }
    }

    @Test("rooms and topics are distinguished by the bytes of their names: é in one character differs from é in two")
    @MainActor
    func names() async throws {
        func channel(_ guest: RoomTestClient, _ room: String, _ topic: String) -> Shared<TopicChannel<Emoji>> {
            guest.backend.withCurrent {
                Shared(.trebuchetTopic(roomType: "chat", topic: topic, roomId: room), store: guest.store)
            }
        }
        let names = ["caf\u{e9}", "cafe\u{301}"]
        try await RoomTestEnvironment.run { environment in
            let (guest, other) = (environment.guest(), environment.guest())
            let listening = names.flatMap { room in names.map { channel(guest, room, $0) } }
            let speaking = names.flatMap { room in names.map { channel(other, room, $0) } }
            for channel in listening + speaking { await wait(for: channel) { $0.isConnected } }
            #expect(environment.host.roomCount == 2)
            for (number, channel) in speaking.enumerated() { try await channel.publish(Emoji(name: "\(number)")) }
            for (number, channel) in listening.enumerated() {
                await wait(for: channel) { $0.hasEvent }
                #expect(channel.wrappedValue.events.map(\.data.name) == ["\(number)"])
            }
        }
    }
}
