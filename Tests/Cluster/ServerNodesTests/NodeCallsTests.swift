import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Actors on several nodes in one process, with a coordination store in memory.
@Suite(.timeLimit(.minutes(5))) struct NodeCallsTests {
    @Test("calls through one node reach actors of all nodes")
    func calls() async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            let client = try await nodes[0].client()
            for number in 0..<60 {
                let tally = try client.resolve(Tally.self, id: "tallies/\(number)")
                #expect(try await tally.add(1) == 1)
                #expect(try await tally.add(number) == number + 1)
            }
            for node in nodes { #expect(node.server.actorCount > 0) }
            #expect(nodes.reduce(0) { $0 + $1.server.actorCount } == 60)
            // Another node leads to the same actors.
            let other = try await nodes[2].client()
            for number in 0..<60 {
                let tally = try other.resolve(Tally.self, id: "tallies/\(number)")
                #expect(try await tally.add(0) == number + 1)
            }
        }
    }

    @Test("a client that observes through another node receives each update before the response of its call")
    func observing() async throws {
        try await withNodes(["a", "b"]) { nodes in
            for node in nodes {
                let client = try await node.client()
                for number in 0..<8 {
                    let tally = try client.resolve(Tally.self, id: "tallies/\(number)")
                    var counts = await tally.observeCount().makeAsyncIterator()
                    var last = try #require(await counts.next())
                    for _ in 0..<10 {
                        let answer = try await tally.add(1)
                        last += 1
                        #expect(answer == last)
                        #expect(await counts.next() == last)
                    }
                }
            }
        }
    }

    @Test("errors and cancellation work as on one node")
    func failures() async throws {
        try await withNodes(["a", "b"]) { nodes in
            for node in nodes {
                let client = try await node.client()
                for number in 0..<4 {
                    let tally = try client.resolve(Tally.self, id: "tallies/\(number)")
                    let error = await #expect(throws: TrebuchetError.self) { try await tally.refuse() }
                    #expect(error?.code == .unauthorized)
                    let stuck = Task { try await tally.wait() }
                    // Its response follows the start of the other call.
                    _ = try await tally.add(0)
                    stuck.cancel()
                    await #expect(throws: (any Error).self) { try await stuck.value }
                }
                let nowhere = try client.resolve(Tally.self, id: "nowhere/1")
                let error = await #expect(throws: TrebuchetError.self) { try await nowhere.add(1) }
                #expect(error?.code == .actorNotFound)
            }
        }
    }

    @Test("a message larger than a node message is sent in parts")
    func large() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            for number in 0..<4 {
                let tally = try client.resolve(Tally.self, id: "tallies/\(number)")
                #expect(try await tally.add(1) == 1)
            }
        }
    }
}
