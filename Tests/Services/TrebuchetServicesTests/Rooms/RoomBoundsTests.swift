import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// Each limit of rooms at its edge, and its release.
@Suite(.timeLimit(.minutes(5))) struct RoomBoundsTests {
    private func connected(_ environment: RoomTestEnvironment) async throws -> RoomTestClient {
        let guest = environment.guest()
        try await guest.client.connect()
        return guest
    }

    /// A room with a permanent member: an empty room ends when a join is refused.
    private func occupiedRoom(_ environment: RoomTestEnvironment) async throws -> Room {
        _ = try await connected(environment).room().join(presence: nil, token: nil, attempt: nil)
        return try await connected(environment).room()
    }

    @Test("a presence is limited in bytes, however it is sent")
    func presenceBytes() async throws {
        var limits = RoomLimits()
        limits.presenceBytes = 100
        try await RoomTestEnvironment.run(limits) { environment in
            let room = try await occupiedRoom(environment)
            func text(_ bytes: Int) -> JSONValue { .string(String(repeating: "x", count: bytes - 2)) }
            let refusal = RoomError.presenceTooLarge(bytes: 101, limit: 100)
            await #expect(throws: refusal) { try await room.join(presence: text(101), token: nil, attempt: nil) }
            _ = try await room.join(presence: text(100), token: nil, attempt: nil)
            await #expect(throws: refusal) { try await room.setPresence(text(101)) }
            try await room.setPresence(text(100))
            try await room.setPresence(JSONValue.object([:]))
            // {"a":"…"} has eight bytes more.
            try await room.patchPresence(.object(["a": text(94)]))
            // The size of the result counts, not that of the patch.
            let made = RoomError.presenceTooLarge(bytes: 106, limit: 100)
            await #expect(throws: made) { try await room.patchPresence(.object(["b": .integer(1)])) }
            #expect(try await environment.roster().members.map(\.data) == [.object(["a": text(94)])])
        }
    }

    @Test("values nested up to the limit are accepted, one level more is not")
    func depth() async throws {
        try await RoomTestEnvironment.run { environment in
            let room = try await occupiedRoom(environment)
            func nested(_ depth: Int) -> JSONValue { (0..<depth).reduce(.integer(1)) { value, _ in .array([value]) } }
            await #expect(throws: RoomError.tooDeep(limit: 48)) {
                try await room.join(presence: nested(49), token: nil, attempt: nil)
            }
            _ = try await room.join(presence: nested(48), token: nil, attempt: nil)
            try await room.publish(topic: "t", payload: nested(48))
            await #expect(throws: RoomError.tooDeep(limit: 48)) {
                try await room.publish(topic: "t", payload: nested(49))
            }
        }
    }

    @Test("names of topics have 1 to 256 bytes, attempts 16 to 256")
    func names() async throws {
        try await RoomTestEnvironment.run { environment in
            let room = try await occupiedRoom(environment)
            func text(_ bytes: Int) -> String { String(repeating: "x", count: bytes) }
            for bytes in [0, 15, 257] {
                await #expect(throws: RoomError.invalidName) {
                    try await room.join(presence: nil, token: nil, attempt: text(bytes))
                }
            }
            for bytes in [16, 256] { _ = try await room.join(presence: nil, token: nil, attempt: text(bytes)) }
            for bytes in [0, 257] {
                await #expect(throws: RoomError.invalidName) {
                    try await room.publish(topic: text(bytes), payload: .null)
                }
            }
            for bytes in [1, 256] { try await room.publish(topic: text(bytes), payload: .null) }
        }
    }

    @Test("a connection may be in a limited number of rooms; after leaving one it may join another")
    func roomsPerConnection() async throws {
        var limits = RoomLimits()
        limits.roomsPerConnection = 2
        try await RoomTestEnvironment.run(limits) { environment in
            let guest = try await connected(environment)
            func join(_ name: String) async throws {
                _ = try await guest.room(name).join(presence: nil, token: nil, attempt: nil)
            }
            // A member keeps the room open: an empty room ends when a join is refused.
            _ = try await connected(environment).room("c").join(presence: nil, token: nil, attempt: nil)
            for name in ["a", "b", "a"] { try await join(name) }
            await #expect(throws: RoomError.tooManyRooms(limit: 2)) { try await join("c") }
            try await guest.room("a").leave(token: nil)
            // It has no membership there any more.
            let room = try guest.room("a")
            await #expect(throws: RoomError.notJoined) { try await room.leave(token: nil) }
            try await join("c")
            await #expect(throws: RoomError.tooManyRooms(limit: 2)) { try await join("d") }
        }
    }

    @Test("a membership ended by its token is removed from its connection, which may join again")
    func leftByToken() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, bob) = (try await connected(environment), try await connected(environment))
            let ticket = try await ada.room().join(presence: .integer(1), token: nil, attempt: nil)
            let other = try await bob.room().join(presence: .integer(2), token: nil, attempt: nil)
            #expect(
                ticket.membershipID != other.membershipID && ticket.token != other.token
                    && ticket.membershipID != ticket.token)
            try await bob.room().leave(token: ticket.token)
            let room = try ada.room()
            await #expect(throws: RoomError.notJoined) { try await room.publish(topic: "t", payload: .null) }
            #expect(try await environment.roster().members.map(\.id) == [other.membershipID])
            let again = try await ada.room().join(presence: nil, token: nil, attempt: nil)
            #expect(again.membershipID != ticket.membershipID)
        }
    }

    @Test("events are numbered from 1 over all topics; a ticket has the last number, and history starts after a number")
    func history() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, bob) = (try await connected(environment), try await connected(environment))
            let first = try await ada.room().join(presence: nil, token: nil, attempt: nil)
            #expect(first.events.last == 0)
            #expect(try await ada.room().history(topic: nil, after: nil, limit: nil) == [])
            #expect(try await ada.room().publish(topic: "a", payload: .integer(1)) == 1)
            #expect(try await ada.room().publish(topic: "b", payload: .integer(2)) == 2)
            let second = try await bob.room().join(presence: nil, token: nil, attempt: nil)
            #expect(second.events == EventPosition(epoch: first.events.epoch, last: 2))
            for (topic, after, limit, numbers) in [
                (nil, nil, nil, [1, 2]), (nil, 0, nil, [1, 2]), (nil, 1, nil, [2]), (nil, 2, nil, []),
                ("a", nil, nil, [1]),
                ("b", 1, nil, [2]), ("c", nil, nil, []), (nil, nil, 1, [2]), (nil, nil, 0, []), (nil, nil, -1, []),
            ] as [(String?, Int?, Int?, [Int])] {
                let found = try await bob.room().history(topic: topic, after: after, limit: limit)
                #expect(found.map(\.number) == numbers)
                #expect(found.allSatisfy { $0.peer == first.membershipID })
            }
        }
    }

    @Test("a room with members is listed with their number, page by page")
    func listed() async throws {
        struct AllCallersRules: RoomRules {
            func canJoin(_ principal: Principal?, _ room: String) -> Bool { true }
            func canList(_ principal: Principal?, _ room: String) -> Bool { true }
        }
        try await RoomTestEnvironment.run(rules: AllCallersRules()) { environment in
            let (ada, bob) = (try await connected(environment), try await connected(environment))
            let list = try ada.client.resolve(RoomList.self, id: "room-lists/chat")
            for name in ["a", "b", "c"] { _ = try await ada.room(name).join(presence: nil, token: nil, attempt: nil) }
            _ = try await bob.room("b").join(presence: nil, token: nil, attempt: nil)
            #expect(environment.host.roomCount == 3)
            func page(after: String? = nil, limit: Int? = nil) async throws -> [String] {
                try await list.list(after: after, limit: limit).map { "\($0.name) \($0.members)" }
            }
            #expect(try await page() == ["chat-a 1", "chat-b 2", "chat-c 1"])
            #expect(try await page(limit: 1) == ["chat-a 1"])
            #expect(try await page(limit: 0) == [])
            #expect(try await page(limit: -1) == [])
            #expect(try await page(after: "chat-a", limit: 1) == ["chat-b 2"])
            #expect(try await page(after: "chat-c") == [])
            try await bob.room("b").leave(token: nil)
            try await ada.room("c").leave(token: nil)
            #expect(try await page() == ["chat-a 1", "chat-b 1"])
            #expect(await eventually { environment.host.roomCount == 2 })
        }
    }

    @Test("a closed connection leaves every room, immediately or after the reconnect time, and releases its quota")
    func gone() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(100)
        limits.membersPerRoom = 2
        try await RoomTestEnvironment.run(limits) { environment in
            let (ada, bob) = (try await connected(environment), try await connected(environment))
            _ = try await ada.room().join(presence: .integer(1), token: nil, attempt: nil)
            let stay = try await bob.room().join(presence: .integer(2), token: nil, attempt: nil).membershipID
            let eve = try await connected(environment)
            await #expect(throws: RoomError.roomFull(limit: 2)) {
                try await eve.room().join(presence: nil, token: nil, attempt: nil)
            }
            await ada.client.close()
            #expect(await eventually { (try? await environment.roster().members.map(\.id)) == [stay] })
            _ = try await eve.room().join(presence: nil, token: nil, attempt: nil)
            await bob.client.close()
            await eve.client.close()
            #expect(await eventually { environment.host.roomCount == 0 })
        }
    }

    // MARK: In the client

    @Test("values over 512 KiB are not sent at all", arguments: [(512 << 10, true), ((512 << 10) + 1, false)])
    func largestValue(bytes: Int, isTaken: Bool) async throws {
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: 1))
        let joined = JoinedRoom("rooms/chat-x", client: client)
        let value = JSONValue.string(String(repeating: "x", count: bytes - 2))
        #expect(value.byteCount == bytes)
        let publication = joined.publish(value, to: "t")
        #expect(publication.isSettled == !isTaken)
        if !isTaken {
            #expect(throws: RoomError.payloadTooLarge(bytes: bytes, limit: 512 << 10)) {
                try publication.outcome.result?.get()
            }
        }
        #expect(joined.contents.withLock { $0.outbox.count } == (isTaken ? 1 : 0))
        await client.close()
    }

    @Test("a client keeps the newest 64 memberships that a server names, each of at most 256 bytes")
    func ownMemberships() {
        var own = OwnMemberships()
        for number in 0..<10_000 { own.insert("\(number)") }
        #expect(own.ids == Set((9_936..<10_000).map { "\($0)" }))
        own.insert("9999")
        own.insert(String(repeating: "x", count: 257))
        #expect(own.ids.count == 64)
        own.insert(String(repeating: "x", count: 256))
        #expect(own.ids.count == 64 && !own.ids.contains("9936") && own.ids.contains("9937"))
    }

    @Test("the oldest events count as missed when events arrive faster than they are delivered")
    func arrived() {
        var contents = JoinedRoom.Contents()
        let events = (1...1_000).map { number in
            JoinedRoom.RoomInput.event(
                RoomEvent(number: number, topic: "t", peer: "p", payload: EncodedJSON(.integer(1))))
        }
        for _ in 0..<100 { contents.addArrived(events) }
        #expect(contents.arrived.count < 3_000)
        #expect(contents.arrived.reduce(0) { $0 + $1.eventCount } == 100_000)
        contents.addArrived([.missed(.max)])
        for _ in 0..<4 { contents.addArrived(events) }
        #expect(contents.arrived.first == .missed(.max) && contents.arrived.suffix(1_000) == events[...])
    }

    /// Records notifications.
    private final class NotificationRecorder: RoomObserver {
        let topic: String?
        private let entries = Mutex<[String]>([])
        init(topic: String? = nil) { self.topic = topic }
        func applyStatus(_ status: RoomStatus) {
            entries.withLock { $0.append("\(status.isJoined) \(status.hasRoster) \(status.hasEvents)") }
        }
        var all: [String] { entries.withLock { $0 } }
    }

    @Test("a room is in use as long as a value shows it; presences need the roster, topics need events")
    func feeds() async throws {
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: 1))
        let joined = JoinedRoom("rooms/chat-x", client: client)
        #expect(!joined.isUsed)
        func wants() -> [Bool] { joined.contents.withLock { [$0.wantsRoster, $0.wantsEvents] } }
        func shown() -> JSONValue? { joined.contents.withLock { $0.plan.presence } }
        #expect(wants() == [false, false])
        let notes = NotificationRecorder()
        let first = joined.addObserver(notes, presence: .integer(1))
        #expect(joined.isUsed && wants() == [true, false] && shown() == .integer(1))
        let second = joined.addObserver(NotificationRecorder(topic: "t"), presence: nil)
        #expect(first != second && wants() == [true, true] && shown() == .integer(1))
        let third = joined.addObserver(NotificationRecorder(), presence: .integer(2))
        joined.remove(first)
        #expect(joined.isUsed && wants() == [true, true] && shown() == .integer(2))
        joined.remove(third)
        #expect(joined.isUsed && wants() == [false, true] && shown() == nil)
        joined.refresh()
        joined.remove(second)
        #expect(!joined.isUsed && wants() == [false, false])
        #expect(notes.all == [])
        _ = joined.addObserver(notes, presence: nil)
        joined.refresh()
        #expect(notes.all == ["false false false"])
        await client.close()
    }

    @Test("rooms count for a client until the server has confirmed that they were left")
    func counted() async throws {
        try await RoomTestEnvironment.run { environment in
            let guest = environment.guest()
            let rooms = guest.backend.rooms
            var lobby: Shared<RoomPresence<ChatPresence>>? = guest.presence("Ada")
            var attic: Shared<TopicChannel<Emoji>>? = guest.emoji(in: "attic")
            await wait(for: try #require(lobby)) { $0.isConnected }
            await wait(for: try #require(attic)) { $0.isConnected }
            #expect(rooms.count.currentValue == 2)
            lobby = nil
            #expect(await eventually { rooms.count.currentValue == 1 && environment.host.roomCount == 1 })
            #expect(rooms.room("rooms/chat-lobby") == nil && rooms.room("rooms/chat-attic") != nil)
            attic = nil
            #expect(await eventually { rooms.count.currentValue == 0 && environment.host.roomCount == 0 })
        }
    }

    @Test("presence updates end when their room is closed")
    func closedClient() async throws {
        try await RoomTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let guest = environment.guest(through: link)
            let ada = guest.presence("Ada")
            await wait(for: ada) { $0.isConnected }
            try await link.refuseConnections {
                await link.disconnectAll()
                await wait(for: ada) { !$0.isConnected }
                let save = Task { try await ada.update { $0.isTyping = true } }
                #expect(await eventually { ada.wrappedValue.user.isTyping })
                await guest.client.close()
                await #expect(throws: (any Error).self) { try await save.value }
            }
            await link.close()
        }
    }

    @Test("a missed event is reported, even a single one")
    func missed() async throws {
        var cursor = EventCursor()
        cursor.joined(at: EventPosition(epoch: "e", last: 3))
        func event(_ number: Int) -> RoomEvent {
            RoomEvent(number: number, topic: "t", peer: "p", payload: EncodedJSON(.null))
        }
        #expect(cursor.last == 3)
        for (numbers, new, missed) in [([], [], 0), ([3], [], 0), ([3, 4], [4], 0), ([6], [6], 1)]
            as [([Int], [Int], Int)]
        {
            let progress = cursor.advance(over: numbers.map(event))
            #expect(progress.events.map(\.number) == new)
            #expect(progress.missed == missed)
        }
        #expect(cursor.last == 6)
        // The starting position is known.
        cursor.reset(after: 100, in: "f")
        #expect(cursor.last == 6)
    }

    @Test("all visible parts of a status count in comparisons")
    func statuses() {
        let status = RoomStatus(isJoined: true, hasRoster: true, hasEvents: true, error: RoomError.notJoined)
        #expect(status == status)
        for change in [
            { $0.isJoined = false }, { $0.hasRoster = false }, { $0.hasEvents = false }, { $0.error = nil },
            { $0.error = RoomError.notYours },
        ] as [(inout RoomStatus) -> Void] {
            var other = status
            change(&other)
            #expect(other != status)
        }
        #expect(isSameError(nil, nil) && isSameError(RoomError.notJoined, RoomError.notJoined))
        #expect(!isSameError(RoomError.notJoined, nil) && !isSameError(nil, RoomError.notJoined))
    }

    @Test("errors about a presence are distinguished from errors about the room")
    func aboutPresence() {
        for error in [
            RoomError.presenceTooLarge(bytes: 1, limit: 1), .roomTooLarge(limit: 1), .tooDeep(limit: 1),
            .invalidValue("x"), .clientTooLarge(limit: 1), .serverTooLarge(limit: 1),
        ] { #expect(error.isAboutPresence) }
        for error in [RoomError.roomFull(limit: 1), .notJoined, .payloadTooLarge(bytes: 1, limit: 1), .forbidden] {
            #expect(!error.isAboutPresence)
        }
        #expect(RoomError.tooManyRooms(limit: 7).description.contains("7"))
        #expect(RoomError.invalidName.description.contains("256 bytes"))
    }
}
