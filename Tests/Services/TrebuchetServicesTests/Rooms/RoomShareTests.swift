import Platform
import SharedState
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite(.timeLimit(.minutes(5))) struct RoomShareTests {
    private func connected(_ environment: RoomTestEnvironment) async throws -> RoomTestClient {
        let guest = environment.guest()
        try await guest.client.connect()
        return guest
    }

    @Test("only members observe a room, and only as long as they are in it")
    func observers() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, eve) = (try await connected(environment), try await connected(environment))
            _ = try await ada.room().join(presence: .integer(1), token: nil, attempt: nil)
            for await _ in try await eve.room().observeRoster() { Issue.record("a non-member sees the members") }
            let events = try await eve.room().observeEvents()
            let refusal = await #expect(throws: TrebuchetError.self) { for try await _ in events {} }
            #expect(refusal?.message.contains("not in the room") == true)
            _ = try await eve.room().join(presence: .integer(2), token: nil, attempt: nil)
            let rosters = try await eve.room().observeRoster()
            var seen = rosters.makeAsyncIterator()
            #expect(await seen.next() != nil)
            try await eve.room().leave(token: nil)
            while await seen.next() != nil {}
            #expect(
                rosters.outcome == .failed(TrebuchetError(.unauthorized, "the connection is no longer in the room")))
        }
    }

    @Test("a user's membership cannot be used by others, not even with its token")
    func stolenToken() throws {
        var membership = RoomMembership<Int>(limit: 10, grace: 1)
        let make = { RoomMembership<Int>.Identity(membershipID: "s", token: "t") }
        _ = try membership.join(1, principal: "ada", token: nil, makeIdentity: make)
        #expect(throws: RoomError.notSignedIn) {
            try membership.join(2, principal: nil, token: "t", makeIdentity: make)
        }
        #expect(throws: RoomError.notYours) {
            try membership.join(2, principal: "eve", token: "t", makeIdentity: make)
        }
        #expect(try membership.join(3, principal: "ada", token: "t", makeIdentity: make).replaced == 1)
        // Letters that look identical belong to another user.
        var french = RoomMembership<Int>(limit: 10, grace: 1)
        _ = try french.join(1, principal: "ren\u{E9}", token: nil, makeIdentity: make)
        #expect(throws: RoomError.notYours) {
            try french.join(2, principal: "rene\u{301}", token: "t", makeIdentity: make)
        }
    }

    @Test("a room whose last member leaves while others join is available to all of them")
    func closing() async throws {
        var limits = RoomLimits()
        limits.joinsPerConnection = RateLimit(callsPerSecond: 1e6, burst: 1_000_000)
        try await RoomTestEnvironment.run(limits) { environment in
            let guests = (0..<4).map { _ in environment.guest() }
            for guest in guests { try await guest.client.connect() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for guest in guests {
                    group.addTask {
                        for _ in 0..<100 {
                            _ = try await guest.room("a").join(presence: nil, token: nil, attempt: nil)
                            try await guest.room("a").leave(token: nil)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(await eventually { environment.host.roomCount == 0 })
        }
    }

    @Test("a user may be in a limited number of rooms, over all connections, including disconnected memberships")
    func rooms() async throws {
        var limits = RoomLimits()
        limits.roomsPerPrincipal = 2
        limits.reconnectTime = .milliseconds(200)
        let access = AccessPolicy { request in request.bearerToken.map { Principal(id: $0) } }
        try await RoomTestEnvironment.run(limits, access: access) { environment in
            let (ada, phone, bob) = (
                environment.guest(as: "ada"), environment.guest(as: "ada"), environment.guest(as: "bob")
            )
            for guest in [ada, phone, bob] { try await guest.client.connect() }
            func join(_ guest: RoomTestClient, _ room: String) async throws {
                // The room of a refused join ends, and another one with its name starts immediately.
                _ = try await guest.room(room).join(presence: nil, token: nil, attempt: nil)
            }
            try await join(ada, "a")
            try await join(phone, "b")
            await #expect(throws: RoomError.tooManyRooms(limit: 2)) { try await join(ada, "c") }
            try await join(bob, "c")
            // A repeated join is no further room.
            try await join(ada, "a")
            try await ada.room("a").leave(token: nil)
            try await join(ada, "c")
            await phone.client.close()
            #expect(
                await eventually {
                    do {
                        try await join(ada, "d")
                        return true
                    } catch { return false }
                })
            await #expect(throws: RoomError.tooManyRooms(limit: 2)) { try await join(ada, "e") }
        }
    }

    @Test("a user has a quota of a room's members, and released memberships are free again")
    func places() throws {
        var membership = RoomMembership<Int>(limit: 10, grace: 1, perPrincipal: 2)
        let ada = QuotaHolder(principal: "ada", host: nil)
        func join(_ guest: Int, _ holder: QuotaHolder?) throws {
            _ = try membership.join(guest, principal: holder?.principal?.text, holder: holder, token: nil) {
                RoomMembership<Int>.Identity(membershipID: "s\(guest)", token: "t\(guest)")
            }
        }
        try join(1, ada)
        try join(2, ada)
        #expect(throws: RoomError.tooManySessions(limit: 2)) { try join(3, ada) }
        try join(4, QuotaHolder(principal: "bob", host: nil))
        membership.endMembership("s1")
        try join(5, ada)
        _ = membership.startGracePeriod(of: 5, at: 0)
        #expect(throws: RoomError.tooManySessions(limit: 2)) { try join(6, ada) }
        _ = membership.endExpired(at: 10)
        try join(6, ada)
    }

    @Test("presences nested too deep or too large in total are refused, and affect no others")
    func bounds() async throws {
        var limits = RoomLimits()
        limits.rosterBytesPerRoom = 3_000
        try await RoomTestEnvironment.run(limits) { environment in
            let bob = environment.guest().presence("Bob")
            await wait(for: bob) { $0.isConnected }
            let eve = try await connected(environment)
            let room = try eve.room()
            var deep = JSONValue.integer(1)
            for _ in 0..<49 { deep = .array([deep]) }
            await #expect(throws: RoomError.tooDeep(limit: 48)) {
                try await room.join(presence: deep, token: nil, attempt: nil)
            }
            _ = try await room.join(presence: .integer(1), token: nil, attempt: nil)
            await #expect(throws: RoomError.tooDeep(limit: 48)) { try await room.publish(topic: "t", payload: deep) }
            await #expect(throws: RoomError.tooDeep(limit: 48)) { try await room.patchPresence(deep) }
            let large = JSONValue.string(String(repeating: "x", count: 3_000))
            await #expect(throws: RoomError.roomTooLarge(limit: 3_000)) { try await room.setPresence(large) }
            await #expect(throws: RoomError.self) {
                try await room.setPresence(EncodedJSON(json: Array(#"{"a":1,"a":2}"#.utf8)))
            }
            guard case .array(let inner) = deep else { preconditionFailure("it is made of arrays") }
            try await room.setPresence(inner[0])
            let ada = environment.guest().presence("Ada")
            await wait(for: ada) { $0.peersList.map(\.data.name) == ["Bob"] }
            #expect(bob.wrappedValue.error == nil)
        }
    }

    private struct Listed: RoomRules {
        func canJoin(_ principal: Principal?, _ room: String) -> Bool { room != "chat-secret" }
        func canList(_ principal: Principal?, _ room: String) -> Bool { true }
    }

    @Test("rooms are joined and listed by users whom the rules allow", arguments: [true, false])
    func rules(areListed: Bool) async throws {
        try await RoomTestEnvironment.run(rules: areListed ? Listed() : OpenRooms()) { environment in
            let ada = try await connected(environment)
            for name in ["b", "a", "c"] { _ = try await ada.room(name).join(presence: nil, token: nil, attempt: nil) }
            let list = try ada.client.resolve(RoomList.self, id: "room-lists/chat")
            guard areListed else {
                await #expect(throws: RoomError.forbidden) { try await list.list(after: nil, limit: nil) }
                return
            }
            let secret = try ada.room("secret")
            await #expect(throws: RoomError.forbidden) {
                try await secret.join(presence: nil, token: nil, attempt: nil)
            }
            #expect(try await list.list(after: nil, limit: 2).map(\.name) == ["chat-a", "chat-b"])
            #expect(
                try await list.list(after: "chat-b", limit: nil)
                    == [RoomSummary(name: "chat-c", members: 1)])
            let others = try ada.client.resolve(RoomList.self, id: "room-lists/other")
            #expect(try await others.list(after: nil, limit: nil) == [])
        }
    }

    @Test("several connections of one user are listed as one user")
    func users() {
        let presence = RoomPresence<Int>(
            user: 0,
            peers: [
                Peer(id: "1", data: 1, principal: "ada"), Peer(id: "2", data: 2),
                Peer(id: "3", data: 3, principal: "ada"),
                Peer(id: "4", data: 4), Peer(id: "5", data: 5, principal: "bob"),
            ])
        #expect(presence.users.map(\.id) == ["2", "3", "4", "5"])
    }
}
