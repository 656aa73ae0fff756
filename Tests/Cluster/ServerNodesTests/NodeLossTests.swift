import NodeSupport
import Platform
import TestSupport
import Testing
import Trebuchet
import TrebuchetActors
import TrebuchetCluster

/// Nodes that join, leave and die while clients call.
@Suite(.timeLimit(.minutes(5))) struct NodeLossTests {
    @Test("streams continue at the next owner when a node dies, and calls wait for it")
    func killed() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            let tallies = try (0..<16).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
            var counts: [StateStream<Int>.AsyncIterator] = []
            for tally in tallies {
                _ = try await tally.add(1)
                counts.append(await tally.observeCount().makeAsyncIterator())
            }
            for index in tallies.indices { #expect(await counts[index].next() == 1) }
            #expect(nodes[1].server.actorCount > 0)
            try await nodes[1].kill()
            for (index, tally) in tallies.enumerated() {
                #expect(try await tally.addOnce(1) == 2)
                #expect(await counts[index].next() == 2)
            }
            #expect(nodes[0].server.actorCount == 16)
        }
    }

    @Test(
        "a draining node hands over its actors: no call fails, and no version is missing",
        arguments: [false, true])
    func drained(areReached: Bool) async throws {
        try await withNodes(["a", "b"], areReached: areReached) { nodes in
            let client = try await nodes[0].client()
            let tallies = try (0..<16).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
            let isOver = Flag()
            let calling = Journal()
            // An unchanged state is not persisted, and starts from its initial value at the next activation.
            for tally in tallies { #expect(try await tally.add(1) == 1) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for tally in tallies {
                    group.addTask {
                        let stream = await tally.observeCount()
                        var counts = stream.makeAsyncIterator()
                        #expect(await counts.next() == 1)
                        var last = 1
                        while !isOver.isSet {
                            last += 1
                            let answer = try await tally.add(1)
                            #expect(answer == last)
                            let shown = await counts.next()
                            #expect(shown == last, "\(String(describing: stream.outcome))")
                            if last == 2 { calling.record("calls") }
                        }
                    }
                }
                let (first, second) = (nodes[0].server, nodes[1].server)
                group.addTask {
                    #expect(await eventually { second.actorCount > 0 })
                    // The clients of all actors call them already.
                    #expect(await eventually { calling.entries.count == 16 })
                    await second.shutdown()
                    #expect(await eventually { first.actorCount == 16 })
                    isOver.set()
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("a joining node takes over its share, unnoticed by clients of both nodes")
    func coming() async throws {
        let engine = MemoryEngine()
        try await withNodes(["a"], engine: engine) { nodes in
            let client = try await nodes[0].client()
            let tallies = try (0..<16).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
            var counts: [StateStream<Int>.AsyncIterator] = []
            for tally in tallies {
                var values = await tally.observeCount().makeAsyncIterator()
                #expect(await values.next() == 0)
                counts.append(values)
                #expect(try await tally.add(1) == 1)
            }
            let second = try Node("b", engine)
            try await second.start()
            await ownAll([nodes[0], second])
            for (index, tally) in tallies.enumerated() {
                #expect(try await tally.add(1) == 2)
                #expect(await counts[index].next() == 1)
                #expect(await counts[index].next() == 2)
            }
            #expect(second.server.actorCount > 0)
            await second.stop()
        }
    }

    @Test("when nodes die under load, each @Idempotent call is answered and executed once", arguments: 1...3)
    func underLoad(seed: Int) async throws {
        let engine = MemoryEngine()
        try await withNodes(["a", "b", "c"], engine: engine) { nodes in
            let client = try await nodes[0].client()
            let tallies = try (0..<24).map { try client.resolve(Tally.self, id: "tallies/\(seed)-\($0)") }
            let isOver = Flag()
            let replacement = try Node("d", engine)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for tally in tallies {
                    group.addTask {
                        // An unchanged state is not persisted, and starts from its initial value at the next activation.
                        var last = try await tally.addOnce(1)
                        let stream = await tally.observeCount()
                        var counts = stream.makeAsyncIterator()
                        #expect(await counts.next() == last)
                        // At least once: the slots may be settled before this task starts.
                        repeat {
                            last += 1
                            let answer = try await tally.addOnce(1)
                            #expect(answer == last)
                            let shown = await counts.next()
                            #expect(shown == last, "\(String(describing: stream.outcome))")
                        } while !isOver.isSet
                    }
                }
                let (first, second, third) = (nodes[0], nodes[1], nodes[2])
                group.addTask {
                    #expect(await eventually { second.server.actorCount > 0 && third.server.actorCount > 0 })
                    try await second.kill()
                    #expect(await eventually { first.server.actorCount + third.server.actorCount == 24 })
                    try await replacement.start()
                    #expect(await eventually { replacement.server.actorCount > 0 })
                    try await third.kill()
                    #expect(await eventually { first.server.actorCount + replacement.server.actorCount == 24 })
                    isOver.set()
                }
                try await group.waitForAll()
            }
            await replacement.stop()
        }
    }

    @Test(
        "a client that knows all nodes reconnects to another when its node dies or stops, and its streams and calls continue",
        arguments: [false, true])
    func severalAddresses(inOrder: Bool) async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            let client = try await Node.client(of: nodes)
            let tallies = try (0..<8).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
            var counts: [StateStream<Int>.AsyncIterator] = []
            for tally in tallies {
                _ = try await tally.addOnce(1)
                counts.append(await tally.observeCount().makeAsyncIterator())
            }
            for index in tallies.indices { #expect(await counts[index].next() == 1) }
            let own = try #require(await ownNode(nodes))
            let calls = tallies.map { tally in Task { try await tally.addOnce(1) } }
            if inOrder {
                await own.server.shutdown(drain: .seconds(10))
            } else {
                try await own.kill()
            }
            for (index, call) in calls.enumerated() {
                #expect(try await call.value == 2)
                #expect(await counts[index].next() == 2)
            }
            // Through another node by now.
            for (index, tally) in tallies.enumerated() {
                #expect(try await tally.addOnce(1) == 3)
                #expect(await counts[index].next() == 3)
            }
            #expect(await ownNode(nodes.filter { $0 !== own }) != nil)
            await client.close()
        }
    }

    /// The node with the only connection.
    private func ownNode(_ nodes: [Node]) async -> Node? {
        for node in nodes where await node.server.counters().connections == 1 { return node }
        return nil
    }
}
