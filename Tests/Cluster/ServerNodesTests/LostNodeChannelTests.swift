import NodeSupport
import Networking
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Nodes that lose the messages for each other: both detect it and continue.
@Suite(.timeLimit(.minutes(5))) struct LostNodeChannelTests {
    /// - Parameter index: the node that uses the coordination store through `engineRoute`. The second one owns `name`.
    private func withTwo(
        faultyAt index: Int, _ body: (_ nodes: [Node], _ engineRoute: FaultyEngine, _ name: String) async throws -> Void
    ) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = try ["a", "b"].enumerated().map { try Node($1, engine, through: $0 == index ? engineRoute : nil) }
        for node in nodes { try await node.start() }
        await ownAll(nodes)
        try await body(nodes, engineRoute, nodes[1].names(1)[0])
        for node in nodes { await node.stop() }
    }

    /// Starts a stream of events.
    private func observe(_ client: TextClient, _ name: String) async {
        client.send(
            "invocation", #""callID":"e","actorID":"\#(name)","targetIdentifier":"observeMarks","arguments":[]"#)
        #expect(await eventually { client.starts.count == 1 })
    }

    private func exchange(_ node: Node) throws -> NodeTransport { try #require(node.server.context.nodes?.exchange) }

    @Test("a stream continues without gaps after its owner was unable to send for a moment")
    func away() async throws {
        try await withTwo(faultyAt: 1) { nodes, engineRoute, name in
            let (client, owners) = (try await nodes[0].textClient(), try await nodes[1].textClient())
            await observe(client, name)
            owners.call("1", name, "add(_:)", [0])
            #expect(await eventually { client.versions.count == 1 })
            engineRoute.set { $0.isAway = true }
            owners.call("2", name, "add(_:)", [0])
            #expect(await eventually { owners.answers("2").count == 1 })
            // The owner has discarded its channel, and the other node receives nothing.
            let exchange = try exchange(nodes[1])
            #expect(await eventually { exchange.channelCount == 0 })
            engineRoute.set { $0.isAway = false }
            #expect(await eventually { client.versions.count == 2 })
            owners.call("3", name, "add(_:)", [0])
            #expect(await eventually { client.versions.count == 3 })
            client.abort()
            owners.abort()
        }
    }

    @Test("a stream continues after both nodes have lost their channels twice with messages in transit")
    func twice() async throws {
        try await withTwo(faultyAt: 1) { nodes, engineRoute, name in
            let (client, owners) = (try await nodes[0].textClient(), try await nodes[1].textClient())
            await observe(client, name)
            let (first, exchange) = (nodes[0].member.node, try exchange(nodes[1]))
            engineRoute.set { $0.holdsMessages = true }
            owners.call("1", name, "add(_:)", [0])
            #expect(await eventually { owners.answers("1").count == 1 })
            for _ in 0..<2 {
                exchange.closeLostChannels(of: first)
                #expect(await eventually { exchange.channelCount == 0 })
            }
            engineRoute.set { $0.holdsMessages = false }
            for number in 2...4 {
                owners.call("\(number)", name, "add(_:)", [0])
                #expect(await eventually { owners.answers("\(number)").count == 1 })
            }
            #expect(await eventually { client.versions.count == 4 })
            client.abort()
            owners.abort()
        }
    }

    @Test("a loss is detected before the first received message and after an earlier loss")
    func lostFirst() async throws {
        try await withTwo(faultyAt: 0) { nodes, engineRoute, name in
            let client = try await nodes[0].textClient()
            // No message was sent in this direction before, and after the first round none in this epoch.
            for number in 1...2 {
                engineRoute.set { $0.losesMessages = true }
                let before = engineRoute.messageCount
                client.call("\(number)", name, "add(_:)", [0], isRepeatable: true)
                #expect(await eventually { engineRoute.messageCount > before })
                try exchange(nodes[0]).send([NodeFrame(.leaving, channelID: 0)], to: nodes[1].member.node)
                #expect(await eventually { engineRoute.messageCount > before + 1 })
                engineRoute.set { $0.losesMessages = false }
                #expect(await eventually { client.answers("\(number)").count == 1 })
                try exchange(nodes[0]).closeLostChannels(of: nodes[1].member.node)
            }
            client.abort()
        }
    }

    @Test("a call that its owner has discarded because of a loss is sent again; one that it has accepted is not")
    func discarded() async throws {
        try await withTwo(faultyAt: 1) { nodes, engineRoute, name in
            let (client, owners) = (try await nodes[0].textClient(), try await nodes[1].textClient())
            let (first, exchange) = (nodes[0].member.node, try exchange(nodes[1]))
            var reads = 0
            func count() async -> String? {
                reads += 1
                owners.call(1_000 + reads, name, "add(_:)", "[0]")
                return await owners.answer(1_000 + reads)
            }
            client.call("0", name, "add(_:)", [1])
            #expect(await eventually { client.answers("0").count == 1 })
            engineRoute.set { $0.losesMessages = true }
            client.call("1", name, "add(_:)", [1])
            // It runs, and its response is lost.
            #expect(await eventually { await count()?.contains(#""result":2"#) == true })
            let before = engineRoute.messageCount
            exchange.closeLostChannels(of: first)
            #expect(await eventually { engineRoute.messageCount > before })
            let handled = exchange.handled(from: first)
            client.call("2", name, "add(_:)", [1])
            #expect(await eventually { exchange.handled(from: first) > handled })
            engineRoute.set { $0.losesMessages = false }
            #expect(await eventually { client.answers("1").count == 1 && client.answers("2").count == 1 })
            #expect(client.answers("1").map(\.error) == ["unknownOutcome"])
            #expect(client.answers("2").map(\.error) == [""], "\(client.answers("2").map(\.text))")
            #expect(await count()?.contains(#""result":3"#) == true)
            client.abort()
            owners.abort()
        }
    }

    @Test("an owner keeps nothing for a client that left when its node lost its channels")
    func gone() async throws {
        try await withTwo(faultyAt: 0) { nodes, engineRoute, name in
            let (client, other) = (try await nodes[0].textClient(), try await nodes[0].textClient())
            await observe(client, name)
            other.call("0", name, "follow(_:)", [0])
            #expect(await eventually { other.answers("0").count == 1 })
            let (exchange, owners) = (try exchange(nodes[0]), try exchange(nodes[1]))
            engineRoute.set { $0.holdsMessages = true }
            other.call("1", name, "follow(_:)", [1])
            client.abort()
            // Those of the other client and of the node.
            #expect(await eventually { exchange.channelCount == 2 && exchange.waitingBytes > 0 })
            exchange.closeLostChannels(of: nodes[1].member.node)
            engineRoute.set { $0.holdsMessages = false }
            other.abort()
            #expect(await eventually { owners.channelCount == 0 })
            #expect(await eventually { await nodes[1].server.counters().streams == 0 })
        }
    }

    @Test("queueing a frame for a node takes constant time, however many wait: else this test takes hours")
    func manyWaiting() async throws {
        try await withTwo(faultyAt: 0) { nodes, engineRoute, name in
            let (exchange, node) = (try exchange(nodes[0]), nodes[1].member.node)
            engineRoute.set { $0.holdsMessages = true }
            let frame = NodeFrame(.close, channelID: 1, [UInt8](repeating: 0, count: 100))
            for _ in 0..<200_000 { exchange.send([frame], to: node) }
            // Except for those of the one message in transit.
            #expect(exchange.waitingBytes > 190_000 * frame.byteCount)
            exchange.closeLostChannels(of: node)
            #expect(exchange.waitingBytes == 0)
            engineRoute.set { $0.holdsMessages = false }
        }
    }
}
