import NodeSupport
import Platform
import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

@testable import TrebuchetServices

/// Rooms and topics on several nodes in one process, with a coordination store in memory.
@MainActor @Suite(.timeLimit(.minutes(5))) struct RoomNodesTests {
    @Test("clients of two nodes see each other and their changes, whichever node owns the room")
    func presence() async throws {
        try await withServices(["a", "b"]) { nodes in
            for room in [nodes[0].room, nodes[1].room] {
                let (ada, bob) = try await (
                    App(nodes[0]).presence("Ada", in: room), App(nodes[1]).presence("Bob", in: room)
                )
                await shows(ada) { $0.peersList.map(\.data.name) == ["Bob"] }
                await shows(bob) { $0.peersList.map(\.data.name) == ["Ada"] }
                try await ada.update { $0.mood = "well" }
                await shows(bob) { $0.peersList.first?.data.mood == "well" }
                try await bob.update { $0.mood = "fine" }
                await shows(ada) { $0.peersList.first?.data.mood == "fine" }
                #expect(nodes.map { $0.rooms.room("chat-\(room)") != nil } == nodes.map { $0.room == room })
            }
        }
    }

    @Test("all clients receive the events published through two nodes in one order")
    func topics() async throws {
        try await withServices(["a", "b"]) { nodes in
            let room = nodes[1].room
            let channels = try await [
                App(nodes[0]).numbers(in: room), App(nodes[1]).numbers(in: room), App(nodes[0]).numbers(in: room),
                App(nodes[1]).numbers(in: room),
            ]
            for channel in channels { await shows(channel) { $0.isConnected } }
            var calls: [OperationCall<Void>] = []
            for number in 1...20 {
                for (index, channel) in channels.prefix(2).enumerated() {
                    calls.append(channel.publish(Count(from: "\(index)", number: number), onAttempt: nil))
                }
            }
            await shows(channels[2]) { $0.events.count == 40 }
            await shows(channels[3]) { $0.events.count == 40 }
            // The responses may arrive after the events.
            for call in calls { try await call.value }
            let order = channels[2].wrappedValue.events.map(\.data)
            #expect(order == channels[3].wrappedValue.events.map(\.data))
            for from in ["0", "1"] { #expect(order.filter { $0.from == from }.map(\.number) == Array(1...20)) }
        }
    }

    @Test("an event whose first write fails is delivered once it is written, and only then acknowledged")
    func publishedWhileAway() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let node = try ServiceNode("a", engine, through: engineRoute)
        try await Node.with([node.node]) {
            let room = node.room
            let channels = try await [App(node).numbers(in: room), App(node).numbers(in: room)]
            for channel in channels { await shows(channel) { $0.isConnected } }
            engineRoute.set { $0.failsAppends = true }
            let before = engineRoute.appendCount
            let publishing = Task { try await channels[0].publish(Count(from: "0", number: 1)) }
            #expect(await eventually { engineRoute.appendCount > before })
            engineRoute.set { $0.failsAppends = false }
            try await publishing.value
            await shows(channels[1]) { $0.events.map(\.data.number) == [1] }
        }
    }

    @Test("a member whose node has died leaves after the reconnect time, and not before")
    func memberLeaves() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(1_500)
        try await withServices(["a", "b"], rooms: limits) { nodes in
            let room = nodes[1].room
            let (ada, bob) = try await (
                App(nodes[0]).presence("Ada", in: room), App(nodes[1]).presence("Bob", in: room)
            )
            await shows(bob) { $0.hasPeers }
            let start = ContinuousClock.now
            try await nodes[0].node.kill()
            await shows(bob) { !$0.hasPeers }
            #expect(ContinuousClock.now - start >= limits.reconnectTime)
            _ = ada
        }
    }

    @Test("a room whose log refuses the first entry of its activation is activated again")
    func refusedNote() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [try ServiceNode("a", engine), try ServiceNode("b", engine, through: engineRoute)]
        try await Node.with(nodes.map(\.node)) {
            let room = nodes[0].room
            let ada = try await App(nodes[1]).presence("Ada", in: room)
            await shows(ada) { $0.isConnected }
            let before = engineRoute.appendCount
            engineRoute.set { $0.fencesAppends = true }
            try await nodes[0].node.kill()
            #expect(await eventually { engineRoute.appendCount > before })
            engineRoute.set { $0.fencesAppends = false }
            let bob = try await App(nodes[1]).presence("Bob", in: room)
            await shows(bob) { $0.peersList.map(\.data.name) == ["Ada"] }
        }
    }

    @Test("a room that could not be loaded does not count towards the limit of rooms")
    func unloadable() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        var limits = RoomLimits()
        limits.rooms = 1
        let node = try ServiceNode("a", engine, through: engineRoute, rooms: limits)
        try await Node.with([node.node]) {
            engineRoute.set { $0.isAway = true }
            for number in 0..<3 {
                let room = try await node.node.client().resolve(Room.self, id: "rooms/chat-\(number)")
                await #expect(throws: (any Error).self) { try await room.leave(token: nil) }
            }
            engineRoute.set { $0.isAway = false }
            let ada = try await App(node).presence("Ada", in: "other")
            await shows(ada) { $0.isConnected }
        }
    }

    @Test("a member whose node has died stays when it reconnects through another node in time")
    func memberStays() async throws {
        try await withServices(["a", "b", "c"]) { nodes in
            let bobs = NameListRecorder()
            let own = try await App(nodes[0], nodes[1])
            let first = try #require(await own.node(of: [nodes[0], nodes[1]]))
            // Neither node of the member's client owns the room.
            let room = nodes[2].room
            let (ada, bob) = (own.presence("Ada", in: room), try await App(nodes[2]).presence("Bob", in: room))
            await shows(bob) { $0.hasPeers }
            await shows(ada) { $0.hasPeers }
            let before = await nodes[2].roster(room)
            let watching = bobs.watch(bob)
            try await first.node.kill()
            try await ada.update { $0.mood = "back" }
            await shows(bob) { $0.peersList.first?.data.mood == "back" }
            watching.cancel()
            #expect(bobs.all == [["Ada"]])
            #expect(await nodes[2].roster(room)?.members.map(\.id) == before?.members.map(\.id))
        }
    }

    @Test(
        "no member disappears when the owner of a room dies or drains: memberships, presence and events are kept",
        arguments: [true, false])
    func owner(dies: Bool) async throws {
        try await withServices(["a", "b", "c"]) { nodes in
            let room = nodes[2].room
            let apps = try await [App(nodes[0], as: "ada"), App(nodes[1]), App(nodes[1])]
            let ada = apps[0].presence("Ada", in: room)
            await shows(ada) { $0.isConnected }
            let bob = apps[1].presence("Bob", in: room)
            let (adas, bobs) = (apps[0].numbers(in: room), apps[1].numbers(in: room))
            for channel in [adas, bobs] { await shows(channel) { $0.isConnected } }
            await shows(ada) { $0.hasPeers }
            await shows(bob) { $0.hasPeers }
            try await ada.update { $0.mood = "well" }
            await shows(bob) { $0.peersList.first?.data.mood == "well" }
            for number in 1...5 { try await adas.publish(Count(from: "ada", number: number)) }
            await shows(bobs) { $0.events.count == 5 }
            let before = try #require(await nodes[2].roster(room))
            let (seenByAda, seenByBob) = (NameListRecorder(), NameListRecorder())
            let watching = [seenByAda.watch(ada), seenByBob.watch(bob)]

            if dies { try await nodes[2].node.kill() } else { await nodes[2].node.server.shutdown(drain: .seconds(10)) }
            for number in 6...10 { try await adas.publish(Count(from: "ada", number: number)) }
            await shows(bobs) { $0.events.count == 10 }
            try await bob.update { $0.mood = "still here" }
            await shows(ada) { $0.peersList.first?.data.mood == "still here" }
            // New and earlier members see the same members, in the same order.
            let carl = apps[2].presence("Carl", in: room)
            await shows(carl) { $0.peersList.map(\.data.name) == ["Ada", "Bob"] }
            await shows(bob) { $0.peersList.map(\.data.name) == ["Ada", "Carl"] }
            watching.forEach { $0.cancel() }

            #expect(seenByBob.all.prefix { $0 == ["Ada"] }.count == seenByBob.all.filter { $0.count == 1 }.count)
            #expect(seenByAda.all.allSatisfy { $0.first == "Bob" }, "\(seenByAda.all)")
            // No client reports an error either.
            #expect(seenByAda.errors + seenByBob.errors == [])
            #expect(carl.wrappedValue.peersList.map(\.id) == before.members.map(\.id))
            #expect(carl.wrappedValue.peersList.map(\.principal) == ["ada", nil])
            #expect(bobs.wrappedValue.events.map(\.data.number) == Array(1...10))
            let owner = try #require(nodes[..<2].first { $0.node.owns("rooms/chat-\(room)") })
            #expect(await eventually { owner.rooms.roomCount == 1 && nodes[2].rooms.roomCount == 0 })
            // The next owner counts the bytes of three presences and ten events, and the earlier one counts none.
            #expect(owner.rooms.memory.totalBytes > 13 * 256)
            #expect(await eventually { nodes[2].rooms.memory.totalBytes == 0 })
        }
    }

    @Test("a member that does not reconnect after the room has moved leaves after the reconnect time")
    func lostWithOwner() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(1_500)
        try await withServices(["a", "b"], rooms: limits) { nodes in
            let room = nodes[1].room
            // Ada's node is also the owner of the room.
            let (ada, bob) = try await (
                App(nodes[1]).presence("Ada", in: room), App(nodes[0]).presence("Bob", in: room)
            )
            await shows(bob) { $0.hasPeers }
            let start = ContinuousClock.now
            try await nodes[1].node.kill()
            await shows(bob) { !$0.hasPeers }
            #expect(ContinuousClock.now - start >= limits.reconnectTime)
            _ = ada
        }
    }

    @Test("a quota of a room counts the memberships of a principal through all nodes, separately from those of others")
    func shares() async throws {
        var limits = RoomLimits()
        limits.membersPerPrincipal = 1
        try await withServices(["a", "b"], rooms: limits) { nodes in
            let name = "rooms/chat-\(nodes[1].room)"
            func join(_ node: ServiceNode, as principal: String) async throws {
                let room = try await App(node, as: principal).client.resolve(Room.self, id: name)
                _ = try await room.join(presence: nil, token: nil, attempt: nil)
            }
            try await join(nodes[0], as: "ada")
            await #expect(throws: RoomError.tooManySessions(limit: 1)) { try await join(nodes[1], as: "ada") }
            try await join(nodes[0], as: "bob")
            // Memberships that a room has taken over from another node count as well.
            try await nodes[1].node.kill()
            await #expect(throws: RoomError.tooManySessions(limit: 1)) { try await join(nodes[0], as: "bob") }
            try await join(nodes[0], as: "carl")
        }
    }

    @Test(
        "the end of a session ends memberships in rooms of other nodes, and its client may join again after a sign-in")
    func revokedSession() async throws {
        try await withServices(["a", "b"]) { nodes in
            await nodes[0].node.server.expose(Gate(actorSystem: nodes[0].node.server.actorSystem), as: "gate")
            let name = "rooms/chat-\(nodes[1].room)"
            let (ada, bob) = try await (App(nodes[0], as: "ada").client, App(nodes[1], as: "bob").client)
            let (gate, room) = (try ada.resolve(Gate.self, id: "gate"), try ada.resolve(Room.self, id: name))
            _ = try await bob.resolve(Room.self, id: name).join(presence: nil, token: nil, attempt: nil)
            for _ in 1...2 {
                _ = try await room.join(presence: nil, token: nil, attempt: nil)
                #expect(await nodes[1].members() == ["ada", "bob"])
                try await gate.revoke()
                #expect(await eventually { await nodes[1].members() == ["bob"] })
                await #expect(throws: TrebuchetError.self) {
                    _ = try await room.join(presence: nil, token: nil, attempt: nil)
                }
                try await gate.signIn(as: "ada")
            }
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
        }
    }

    @Test("an event is stored for the next owner byte for byte, whatever JSON it contains")
    func events() async throws {
        try await withServices(["a", "b"]) { nodes in
            let room = nodes[1].room
            let app = try await App(nodes[0])
            let actor = try app.client.resolve(Room.self, id: "rooms/chat-\(room)")
            let ticket = try await actor.join(presence: nil, token: nil, attempt: nil)
            let payloads = try [#"{"a":1,"a":2}"#, "1e999", #"{"é":"\u0000"}"#].map {
                try EncodedJSON(json: Array($0.utf8))
            }
            for payload in payloads { try await actor.publish(topic: "x", payload: payload) }
            try await nodes[1].node.kill()
            let again = try await actor.join(presence: nil, token: ticket.token, attempt: nil)
            #expect(again.membershipID == ticket.membershipID)
            #expect(again.events.last == 3 && again.events.epoch != ticket.events.epoch)
            #expect(again.events.earlier == [EventPosition(epoch: ticket.events.epoch, last: 3)])
            let history = try await actor.history(topic: nil, after: nil, limit: nil)
            #expect(history.map(\.payload) == payloads && history.map(\.number) == [1, 2, 3])
        }
    }

    @Test("an empty room leaves no data, and the next one with its name starts from the beginning")
    func over() async throws {
        let engine = MemoryEngine()
        try await withServices(["a", "b"], engine: engine) { nodes in
            let room = nodes[1].room
            let app = try await App(nodes[0])
            try await app.client.connect()
            let actor = try app.client.resolve(Room.self, id: "rooms/chat-\(room)")
            for round in 1...2 {
                _ = try await actor.join(presence: EncodedJSON(.object([:])), token: nil, attempt: nil)
                #expect(try await actor.publish(topic: "x", payload: EncodedJSON(.null)) == 1, "round \(round)")
                try await actor.leave(token: nil)
                #expect(await eventually { nodes[1].rooms.roomCount == 0 })
            }
            #expect(
                await eventually {
                    (try? await engine.read(ClusterLog("rooms/chat-\(room)"), after: nil).head) == .start
                })
        }
    }
}

/// The distinct successive lists of names that a value has shown.
final class NameListRecorder: Sendable {
    private let seen = Mutex<(names: [[String]], errors: [String])>(([], []))

    var all: [[String]] { seen.withLock { $0.names } }
    var errors: [String] { seen.withLock { $0.errors } }

    func watch(_ presence: Shared<RoomPresence<ChatPresence>>) -> Task<Void, Never> {
        Task {
            for await value in presence.updates {
                let now = value.peersList.map(\.data.name)
                seen.withLock { seen in
                    if seen.names.last != now { seen.names.append(now) }
                    if let error = value.error { seen.errors.append("\(error)") }
                }
            }
        }
    }
}

/// Ends the session of its caller's connection, and signs in again.
@Trebuchet
distributed actor Gate {
    distributed func revoke() { Caller.current?.connection.revokeAccess("the session has ended", except: "gate") }
    distributed func signIn(as name: String) { Caller.current?.connection.principal = Principal(id: name) }
}
