import Relays
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices

/// A connection whose principal changes while it is in a room: nothing of the previous principal remains with the next one.
@Suite(.timeLimit(.minutes(5))) struct RoomPrincipalTests {
    private func run(_ body: (RoomTestEnvironment) async throws -> Void) async throws {
        try await RoomTestEnvironment.run { environment in
            await environment.server.expose(
                RulesTestServer(actorSystem: environment.server.actorSystem), as: RulesTestServer.name)
            try await body(environment)
        }
    }

    private func connected(_ environment: RoomTestEnvironment, as id: String? = nil) async throws -> RoomTestClient {
        let guest = environment.guest()
        try await guest.client.connect()
        if id != nil { try await become(guest, id) }
        return guest
    }

    private func become(_ guest: RoomTestClient, _ id: String?) async throws {
        try await guest.client.resolve(RulesTestServer.self, id: RulesTestServer.name).become(id, [])
    }

    private func join(_ guest: RoomTestClient, token: String? = nil) async throws -> RoomTicket {
        try await guest.room().join(presence: .object([:]), token: token, attempt: nil)
    }

    /// The principals of the members, as members see them and as an administrator does.
    private func principals(_ environment: RoomTestEnvironment) async throws -> [[String?]] {
        let roster = try await environment.roster().members.map(\.principal)
        let members = await environment.host.members(of: "chat-lobby") ?? []
        return [roster, members.map(\.principal)]
    }

    @Test("a member that signs in as another user is a new member, and its old membership has ended")
    func anotherUser() async throws {
        try await run { environment in
            let watcher = try await connected(environment)
            let watchers = try await join(watcher)
            let member = try await connected(environment, as: "ada")
            let adas = try await join(member)
            try await become(member, nil)
            try await become(member, "bob")
            let bobs = try await join(member)
            #expect(bobs.membershipID != adas.membershipID && bobs.token != adas.token)
            #expect(try await environment.roster().members.map(\.id).contains(adas.membershipID) == false)
            #expect(
                await environment.host.members(of: "chat-lobby")?.map { [$0.membershipID, $0.principal] }.sorted {
                    $0[0]! < $1[0]!
                }
                    == [[watchers.membershipID, nil], [bobs.membershipID, "bob"]].sorted { $0[0]! < $1[0]! })
            // Ada's token is worth nothing, even to her.
            let ada = try await connected(environment, as: "ada")
            await #expect(throws: RoomError.unknownToken) { try await join(ada, token: adas.token) }
        }
    }

    @Test("a member that signs out or signs in as another user publishes and shows nothing as the previous user")
    func noLongerMember() async throws {
        for next in [nil, "bob"] as [String?] {
            try await run { environment in
                let member = try await connected(environment, as: "ada")
                _ = try await join(member)
                try await become(member, next)
                await #expect(throws: RoomError.notJoined) {
                    try await member.room().publish(topic: "t", payload: .null)
                }
            }
            try await run { environment in
                let member = try await connected(environment, as: "ada")
                _ = try await join(member)
                try await become(member, next)
                await #expect(throws: RoomError.notJoined) { try await member.room().setPresence(.object([:])) }
            }
        }
    }

    @Test("a member that signs out disappears for the others without another call, and its streams end")
    func signsOut() async throws {
        try await run { environment in
            let watcher = try await connected(environment)
            _ = try await join(watcher)
            let member = try await connected(environment, as: "ada")
            _ = try await join(member)
            let isOver = StateRelay(false)
            let room = try member.room()
            let reading = Task {
                defer { isOver.update { $0 = true } }
                for try await _ in await room.observeEvents() {}
            }
            defer { reading.cancel() }
            try await become(member, nil)
            #expect(await eventually { isOver.currentValue })
            #expect(await eventually { (try? await environment.roster().members.count) == 1 })
        }
    }

    @Test("a member whose session ends disappears for the others")
    func sessionEnds() async throws {
        try await run { environment in
            let watcher = try await connected(environment)
            _ = try await join(watcher)
            let member = try await connected(environment, as: "ada")
            _ = try await join(member)
            try? await member.client.resolve(RulesTestServer.self, id: RulesTestServer.name).revoke()
            #expect(await eventually { (try? await environment.roster().members.count) == 1 })
            #expect(await environment.host.members(of: "chat-lobby")?.count == 1)
        }
    }

    @Test("a member that signs in keeps its membership, and the others see its principal")
    func signsIn() async throws {
        try await run { environment in
            let member = try await connected(environment)
            let before = try await join(member)
            try await become(member, "ada")
            #expect(await eventually { (try? await principals(environment)) == [["ada"], ["ada"]] })
            #expect(try await join(member) == before)
            // From now on it is the membership of this user.
            try await become(member, "bob")
            await #expect(throws: RoomError.notJoined) { try await member.room().publish(topic: "t", payload: .null) }
        }
    }

    @Test("a kick bans the user that the connection has at that moment, and the connection")
    func kicked() async throws {
        try await run { environment in
            let watcher = try await connected(environment)
            _ = try await join(watcher)
            let member = try await connected(environment, as: "ada")
            _ = try await join(member)
            try await become(member, "bob")
            let bobs = try await join(member)
            #expect(await environment.host.kick(bobs.membershipID, from: "chat-lobby", for: .seconds(600)))
            for next in ["bob", nil, "eve"] {
                try await become(member, next)
                let error = await #expect(throws: RoomError.self) { try await join(member) }
                guard case .kicked? = error else {
                    Issue.record("\(String(describing: error)) as \(next ?? "nobody")")
                    continue
                }
            }
            let ada = try await connected(environment, as: "ada")
            _ = try await join(ada)
            let bob = try await connected(environment, as: "bob")
            await #expect(throws: RoomError.self) { try await join(bob) }
        }
    }
}
