import NodeSupport
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Actors of one node that call and observe actors of other nodes.
@Suite(.timeLimit(.minutes(5))) struct ClusterActorTests {
    private static let tallies = (0..<24).map { "tallies/\($0)" }

    @Test("an actor calls other actors by name, whatever their node", arguments: [false, true])
    func calls(areReached: Bool) async throws {
        try await withNodes(["a", "b", "c"], areReached: areReached) { nodes in
            let client = try await nodes[0].client()
            for number in 1...6 {
                let clerk = try client.resolve(CrossNodeCaller.self, id: "clerks/\(number)")
                #expect(try await clerk.count(Self.tallies) == number * Self.tallies.count)
            }
            // The actors are reachable through any node.
            let other = try await nodes[2].client()
            for name in Self.tallies { #expect(try await other.resolve(Tally.self, id: name).add(0) == 6) }
            #expect(nodes.allSatisfy { node in Self.tallies.contains { node.owns($0) } })
        }
    }

    @Test("calls of one actor to another start in order")
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

    @Test("an actor observes other actors, and receives each update before the response of its call")
    func observing() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            for node in nodes {
                let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
                #expect(try await clerk.watch(node.names(1)[0], until: 10) == Array(0...10))
            }
        }
    }

    @Test("calls of actors run as the server: without a principal, and without the rules for clients")
    func trusted() async throws {
        var access = AccessPolicy()
        access.identifiesCallers = true
        var limits = ServerLimits()
        limits.calls.rate.perMethod[RatedMethod("caller()", of: Tally.self)] = RateLimit(callsPerSecond: 0.02, burst: 1)
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

    @Test("a client cannot make the server call an actor for it: a reference that it sends confers no authorization")
    func given() async throws {
        var access = AccessPolicy()
        access.identifiesCallers = true
        let rule: NodeRule = { _, caller, target in caller?.isServer == true || target != "caller()" }
        try await withNodes(["a", "b"], access: access, rule: rule) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            for node in nodes {
                let tally = try client.resolve(Tally.self, id: node.names(1)[0])
                // Before and after the activation.
                for isThere in [false, true] {
                    if isThere { _ = try await tally.add(1) }
                    let outcome: String
                    do {
                        outcome = try await clerk.name(of: tally)
                    } catch let error as TrebuchetError {
                        outcome = "\(error.code)"
                    }
                    // A local actor is called with the caller's identity; a remote one is not called at all.
                    #expect(outcome == (isThere && node === nodes[0] ? "nobody" : "unavailable"))
                }
            }
        }
    }

    @Test("an actor cannot change the server's identity for other actors")
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

    @Test("limits of a client's connection do not apply to the server")
    func limits() async throws {
        var limits = ServerLimits()
        limits.streams.perConnection = 2
        limits.calls.perConnection = 2
        limits.activatedActors.perConnection = 2
        try await withNodes(["a", "b"], limits: limits) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            #expect(try await clerk.watchAll(Self.tallies) == Self.tallies.count)
            // More than two in-flight calls, each waiting for the next: they must not be queued behind each other.
            #expect(try await clerk.again(nodes[0].names("clerks")[0], 20) == 20)
            #expect(try await clerk.again(nodes[1].names("clerks")[0], 20) == 20)
        }
    }

    @Test("a stored reference leads to the next owner, and no call is executed twice")
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
                #expect(try await clerk.addToTally(1) == last)
            }
        }
    }

    @Test("a stored reference leads to the next owner when a node drains")
    func drained() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: nodes[0].names("clerks")[0])
            // The reference must not be bound to the local instance.
            for name in [nodes[0].names(1)[0], nodes[1].names(1)[0]] {
                try await clerk.hold(name)
                #expect(try await clerk.addToTally(1) == 1)
                #expect(try await client.resolve(Tally.self, id: name).add(0) == 1)
            }
            let name = nodes[1].names(1)[0]
            await nodes[1].server.shutdown(drain: .seconds(2))
            #expect(try await clerk.addToTally(1) == 2)
            #expect(nodes[0].owns(name))
        }
    }
}
