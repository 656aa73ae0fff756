import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Actors of one node that call and observe those of others.
@Suite(.timeLimit(.minutes(5))) struct ClusterActorTests {
    private static let tallies = (0..<24).map { "tallies/\($0)" }

    @Test("an actor calls others by name, wherever they live", arguments: [false, true])
    func calls(areReached: Bool) async throws {
        try await withNodes(["a", "b", "c"], areReached: areReached) { nodes in
            let client = try await nodes[0].client()
            for number in 1...6 {
                let clerk = try client.resolve(CrossNodeCaller.self, id: "clerks/\(number)")
                #expect(try await clerk.count(Self.tallies) == number * Self.tallies.count)
            }
            // The same are reached through any node.
            let other = try await nodes[2].client()
            for name in Self.tallies { #expect(try await other.resolve(Tally.self, id: name).add(0) == 6) }
            #expect(nodes.allSatisfy { node in Self.tallies.contains { node.owns($0) } })
        }
    }

    @Test("calls of one actor to another begin in their order")
    func order() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            for node in nodes {
                for name in node.names(4) {
                    let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
                    #expect(try await clerk.follow(name, 100))
                }
            }
        }
    }

    @Test("an actor observes others, and sees each change before the answer of its call")
    func observing() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            for node in nodes {
                let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
                #expect(try await clerk.watch(node.names(1)[0], until: 10) == Array(0...10))
            }
        }
    }

    @Test("what actors do is the server's: it has no principal, and no rule for clients is asked")
    func trusted() async throws {
        var access = AccessPolicy()
        access.identifiesCallers = true
        var limits = ServerLimits()
        limits.callsPerMethod = ["caller()": RateLimit(callsPerSecond: 0.02, burst: 1)]
        // Clients may not call tallies.
        let rule: NodeRule = { _, _, target in target != "caller()" }
        try await withNodes(["a", "b"], access: access, limits: limits, rule: rule) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            for node in nodes {
                let name = node.names(1)[0]
                await #expect(throws: TrebuchetError.self) {
                    try await client.resolve(Tally.self, id: name).caller()
                }
                for _ in 0..<5 { #expect(try await clerk.name(to: name) == "a server") }
            }
        }
    }

    @Test(
        "a client cannot have the server call for it what it may not: a reference that it sends lends nobody's rights")
    func given() async throws {
        var access = AccessPolicy()
        access.identifiesCallers = true
        let rule: NodeRule = { _, caller, target in caller?.isServer == true || target != "caller()" }
        try await withNodes(["a", "b"], access: access, rule: rule) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            for node in nodes {
                let tally = try client.resolve(Tally.self, id: node.names(1)[0])
                // Made or not.
                for isThere in [false, true] {
                    if isThere { _ = try await tally.add(1) }
                    let outcome: String
                    do {
                        outcome = try await clerk.name(of: tally)
                    } catch let error as TrebuchetError {
                        outcome = "\(error.code)"
                    }
                    // What is here is called by whoever has called; what is elsewhere not at all.
                    #expect(outcome == (isThere && node === nodes[0] ? "nobody" : "unavailable"))
                }
            }
        }
    }

    @Test("no actor changes for the others who the server is")
    func shared() async throws {
        var access = AccessPolicy()
        access.identifiesCallers = true
        try await withNodes(["a", "b"], access: access) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            for node in nodes {
                let names = node.names(2)
                #expect(try await clerk.mislead(names[0], names[1]) == Array(repeating: "a server", count: 4) + ["0"])
            }
        }
    }

    @Test("limits of a client's connection are none of the server's")
    func limits() async throws {
        var limits = ServerLimits()
        limits.streamsPerConnection = 2
        limits.callsPerConnection = 2
        limits.activatedActorsPerConnection = 2
        try await withNodes(["a", "b"], limits: limits) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            #expect(try await clerk.watchAll(Self.tallies) == Self.tallies.count)
            // More than two under way at once, each waiting for the next: none may stand in a line behind the others.
            #expect(try await clerk.again(nodes[0].names("clerks")[0], 20) == 20)
            #expect(try await clerk.again(nodes[1].names("clerks")[0], 20) == 20)
        }
    }

    @Test("a reference that is kept leads to the next owner, and no call is done twice")
    func ownerDies() async throws {
        try await withNodes(["a", "b", "c"]) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            let name = nodes[2].names(1)[0]
            try await clerk.hold(name)
            var last = 0
            for number in 1...60 {
                if number == 20 { try await nodes[2].kill() }
                last += 1
                #expect(try await clerk.addToHeld(1) == last)
            }
        }
    }

    @Test("a reference that is kept leads to the next owner when a node is drained")
    func drained() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            // It lives here first, and is not held as what it is here.
            for name in [nodes[0].names(1)[0], nodes[1].names(1)[0]] {
                try await clerk.hold(name)
                #expect(try await clerk.addToHeld(1) == 1)
                #expect(try await client.resolve(Tally.self, id: name).add(0) == 1)
            }
            let name = nodes[1].names(1)[0]
            await nodes[1].server.shutdown(drain: .seconds(2))
            #expect(try await clerk.addToHeld(1) == 2)
            #expect(nodes[0].owns(name))
        }
    }
}
