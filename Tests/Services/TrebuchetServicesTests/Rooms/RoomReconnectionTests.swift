import SharedState
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

@Suite(.timeLimit(.minutes(5))) struct RoomReconnectionTests {
    @Test(
        "a member that reconnects neither flickers nor appears twice, and receives the missed events",
        arguments: [FaultyLink.Cut.reset, .inOrder, .halfOpen(.milliseconds(300))])
    func resumed(cut: FaultyLink.Cut) async throws {
        try await RoomTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let guest = environment.guest(through: link)
            let (ada, emoji) = (guest.presence("Ada"), guest.emoji())
            let other = environment.guest()
            let (bob, bobs) = (other.presence("Bob"), other.emoji())
            await wait(for: emoji) { $0.isConnected }
            await wait(for: bob) { $0.hasPeers }
            await wait(for: bobs) { $0.isConnected }
            #expect(await eventually { (try? await environment.roster().members.count) == 2 })
            let before = try await environment.roster()
            for round in 1...3 {
                await link.disconnectAll(cut)
                try await bobs.publish(Emoji(name: "\(round)"))
                await wait(for: emoji) { $0.isConnected && $0.latestEvent?.data.name == "\(round)" }
                await wait(for: ada) { $0.isConnected && !$0.isError }
                // The numbers as well: no member was removed and added again.
                #expect(try await environment.roster() == before, "round \(round)")
            }
            #expect(emoji.wrappedValue.events.map(\.data.name) == ["1", "2", "3"])
            try await ada.update { $0.isTyping = true }
            await wait(for: bob) { $0.peers.first?.data.isTyping == true }
            let id = try #require(bob.wrappedValue.peers.first?.id)
            #expect(before.members.contains { $0.id == id })
            #expect(
                await eventually { await environment.server.connectionCount == 2 }, "the old connections are closed")
            #expect(try await environment.roster().members.count == 2)
            await link.close()
        }
    }

    @Test("changes without a connection are shown immediately, and sent after the next join")
    func changedOffline() async throws {
        try await RoomTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 2)
            let ada = environment.guest(through: link).presence("Ada")
            let bob = environment.guest().presence("Bob")
            await wait(for: bob) { $0.hasPeers }
            try await link.refuseConnections {
                await link.disconnectAll()
                await wait(for: ada) { !$0.isConnected }
                ada.withLock { $0.user.name = "Ada again" }
                #expect(ada.wrappedValue.user.name == "Ada again")
            }
            await wait(for: bob) { $0.peersList.map(\.data.name) == ["Ada again"] }
            await link.close()
        }
    }

    @Test("a disconnected member loses its membership after the reconnect time, and then gets a new one")
    func grace() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(200)
        try await RoomTestEnvironment.run(limits) { environment in
            let link = try FaultyLink(to: environment.address, seed: 3)
            let ada = environment.guest(through: link).presence("Ada")
            let bob = environment.guest().presence("Bob")
            await wait(for: bob) { $0.hasPeers }
            let before = bob.wrappedValue.peers.first?.id
            let start = ContinuousClock.now
            try await link.refuseConnections {
                await link.disconnectAll()
                await wait(for: bob) { !$0.hasPeers }
            }
            #expect(ContinuousClock.now - start >= limits.reconnectTime)
            await wait(for: bob) { $0.hasPeers }
            #expect(bob.wrappedValue.peers.first?.id != before)
            await wait(for: ada) { $0.isConnected && $0.peers.count == 1 }
            await link.close()
        }
    }

    @Test("a client that answers no pings loses its connection, and then its membership")
    func silent() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(50)
        var serverLimits = ServerLimits()
        serverLimits.connections.pingInterval = .milliseconds(100)
        serverLimits.connections.pongTimeout = .milliseconds(100)
        try await RoomTestEnvironment.run(limits, serverLimits: serverLimits) { environment in
            let link = try FaultyLink(to: environment.address, seed: 4)
            let ada = environment.guest(through: link).presence("Ada")
            let bob = environment.guest().presence("Bob")
            await wait(for: bob) { $0.hasPeers }
            await link.pauseTraffic()
            await wait(for: bob) { !$0.hasPeers }
            await link.resumeTraffic()
            await link.disconnectAll()
            await wait(for: bob) { $0.hasPeers }
            _ = ada
            await link.close()
        }
    }

    @Test("a leave without a connection is sent over the next one, long before the reconnect time is over")
    func leftOffline() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .seconds(1_000)
        try await RoomTestEnvironment.run(limits) { environment in
            let link = try FaultyLink(to: environment.address, seed: 5)
            let guest = environment.guest(through: link)
            var ada: Shared<RoomPresence<ChatPresence>>? = guest.presence("Ada")
            let bob = environment.guest().presence("Bob")
            await wait(for: bob) { $0.hasPeers }
            try await link.refuseConnections {
                await link.disconnectAll()
                await wait(for: try #require(ada)) { !$0.isConnected }
                ada = nil
            }
            await wait(for: bob) { !$0.hasPeers }
            await link.close()
        }
    }

    @Test("a client that leaves after its connection was cut, wherever, leaves no membership behind")
    func leftAfterCut() async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .seconds(1_000)
        try await RoomTestEnvironment.run(limits) { environment in
            try await withThrowingTaskGroup { group in
                // The positions include those between the execution of a join and the end of its response.
                for position in stride(from: 100, through: 1_500, by: 25) {
                    group.addTask {
                        var faults = FaultyLink.Faults()
                        faults.cutAfterBytes = position...position
                        let link = try FaultyLink(to: environment.address, seed: UInt64(position), faults: faults)
                        let guest = environment.guest(through: link)
                        var ada: Shared<RoomPresence<ChatPresence>>? = guest.presence("Ada", in: "\(position)")
                        #expect(
                            await eventually {
                                link.counters.openSockets == 2 && link.counters.accepted > 0
                                    || ada?.wrappedValue.isConnected == true
                            })
                        await link.setFaults(.none)
                        ada = nil
                        #expect(
                            await eventually {
                                guest.backend.rooms.count.currentValue == 0
                                    && environment.host.room("chat-\(position)") == nil
                            },
                            "cut after \(position) bytes")
                        await link.close()
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test(
        "over links that are cut, stalled and split at random, both clients end with the server's state",
        arguments: 1...4)
    func harsh(seed: UInt64) async throws {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(500)
        limits.joinsPerConnection = RateLimit(callsPerSecond: 10_000, burst: 10_000)
        var serverLimits = ServerLimits()
        serverLimits.connections.pingInterval = .seconds(1)
        serverLimits.connections.pongTimeout = .seconds(2)
        try await RoomTestEnvironment.run(limits, serverLimits: serverLimits) { environment in
            var faults = FaultyLink.Faults.harsh
            faults.cutAfterBytes = 300...3_000
            let link = try FaultyLink(to: environment.address, seed: seed, faults: faults)
            let (ada, bob) = (
                environment.guest(through: link).presence("Ada"), environment.guest(through: link).presence("Bob")
            )
            for number in 1...25 {
                bob.withLock { $0.user.name = "Bob \(number)" }
                try await ada.update { $0.name = "Ada \(number)" }
            }
            await wait(for: ada) { $0.peersList.map(\.data.name) == ["Bob 25"] }
            await wait(for: bob) { $0.peersList.map(\.data.name) == ["Ada 25"] }
            let counters = link.counters
            #expect(counters.orderlyCloses + counters.resets + counters.halfOpens > 0)
            await link.close()
        }
    }
}
