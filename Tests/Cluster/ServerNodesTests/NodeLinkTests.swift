import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Nodes with direct links to each other.
@Suite(.timeLimit(.minutes(5))) struct NodeLinkTests {
    @Test("messages between nodes use direct links as soon as there are any")
    func direct() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: engineRoute, areReached: true) { nodes in
            let client = try await nodes[0].client()
            let tally = try client.resolve(Tally.self, id: #require(nodes[1].names("tallies").first))
            var counts = await tally.observeCount().makeAsyncIterator()
            #expect(await counts.next() == 0)
            // The first messages go through the coordination store, until each node has a link to the other.
            #expect(
                await eventually {
                    let before = engineRoute.messageCount
                    _ = try? await tally.add(1)
                    return nodes.allSatisfy { $0.server.context.nodes?.openLinkCount == 1 }
                        && engineRoute.messageCount == before
                })
            let before = engineRoute.messageCount
            let last = try await tally.add(1)
            for _ in 0..<100 { _ = try await tally.add(1) }
            while let count = await counts.next(), count < last + 100 {}
            #expect(engineRoute.messageCount == before)
        }
    }

    @Test("a node that fails to reach its coordination store can be started again at the same addresses")
    func startedAgain() async throws {
        let probe = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let port = try await probe.start().port
        await probe.shutdown(drain: .zero)
        let engineRoute = FaultyEngine(MemoryEngine())
        engineRoute.set { $0.isAway = true }
        let membership = try ClusterMembership(
            of: "a", at: engineRoute, settings: Node.settings, address: NodeAddress(host: "127.0.0.1", port: port))
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, cluster: membership, log: nil)
        for _ in 0..<3 {
            let error = await #expect(throws: ClusterEngineError.self) { try await server.start() }
            #expect(error?.code == .unavailable)
        }
        engineRoute.set { $0.isAway = false }
        try await server.start()
        #expect(await eventually { membership.member.slotCount == ClusterSlot.count })
        await server.shutdown(drain: .zero)
    }

    @Test("a broken link loses only messages in transit: calls continue through the coordination store, in order")
    func ending() async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b"], engine: engine, areReached: true) { nodes in
            let client = try await nodes[0].client()
            let tally = try client.resolve(Tally.self, id: #require(nodes[1].names("tallies").first))
            var known = 0
            for number in 1...400 {
                // Counted in calls: on a busy machine each call would take as long as the interval between two cuts.
                let isCut = number.isMultiple(of: 8)
                async let cut: Void = { if isCut { for node in nodes { node.server.context.nodes?.cutLinks() } } }()
                do {
                    #expect(try await tally.follow(number))
                    known += 1
                } catch let error as TrebuchetError where error.code == .unknownOutcome {
                    // The call was in transit.
                }
                await cut
            }
            #expect(known > 300)
        }
    }

    @Test("a node that drains is reached over its link as long as calls run there")
    func stopping() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = try ["a", "b"].map { try Node($0, engine, through: $0 == "a" ? engineRoute : nil, isReached: true) }
        try await Node.with(nodes) {
            let (first, second) = (nodes[0], nodes[1])
            let till = try await first.client().resolve(CashRegister.self, id: second.names("tills")[0])
            #expect(
                await eventually {
                    _ = try? await till.pay("x", 1)
                    return first.server.context.nodes?.openLinkCount == 1
                })
            let pendingCall = Task { try await till.hold("stopping") }
            #expect(await eventually { PaymentLog.shared.count("stopping") == 1 })
            let stopping = Task { await second.server.shutdown() }
            #expect(await eventually { !first.member.liveNodes.contains(second.member.node) })
            let rounds = engineRoute.roundCount
            #expect(await eventually { engineRoute.roundCount > rounds + 4 })
            #expect(first.server.context.nodes?.openLinkCount == 1)
            PaymentLog.shared.release("stopping")
            #expect(try await pendingCall.value == "stopping")
            await stopping.value
        }
    }

    @Test("when nodes die under load, each @Idempotent call is answered and executed once")
    func underLoad() async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b", "c"], engine: engine, areReached: true) { nodes in
            let client = try await nodes[0].client()
            let tallies = try (0..<12).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
            let isOver = Flag()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for tally in tallies {
                    group.addTask {
                        var last = try await tally.addOnce(1)
                        var counts = await tally.observeCount().makeAsyncIterator()
                        #expect(await counts.next() == last)
                        while !isOver.isSet {
                            last += 1
                            #expect(try await tally.addOnce(1) == last)
                            #expect(await counts.next() == last)
                        }
                    }
                }
                let (first, second, third) = (nodes[0], nodes[1], nodes[2])
                group.addTask {
                    #expect(await eventually { second.server.actorCount > 0 && third.server.actorCount > 0 })
                    try await second.kill()
                    #expect(await eventually { first.server.actorCount + third.server.actorCount == 12 })
                    await third.server.shutdown()
                    #expect(await eventually { first.server.actorCount == 12 })
                    isOver.set()
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("messages are read as they were written; invalid ones are refused")
    func messages() {
        #expect(
            NodeLinkAcknowledgement([1, 2]) == nil
                && NodeLinkAcknowledgement(NodeLinkAcknowledgement(received: 7).bytes)?.received == 7)
        let announcement = NodeAnnouncement(NodeAddress(host: "::1", port: 7))
        #expect(NodeAnnouncement(announcement.bytes) == announcement)
        #expect(NodeAnnouncement([]) == nil && NodeAnnouncement(Array(announcement.bytes.dropLast())) == nil)
        // The announcement of a node without TLS, which is reached through the coordination store.
        #expect(NodeAnnouncement([1] + announcement.bytes.dropFirst()) == nil)
    }
}
