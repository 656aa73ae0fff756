import NodeSupport
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// The metrics of each of several nodes, and the slot owners that the inspector shows.
@Suite(.timeLimit(.minutes(5))) struct NodeMetricsTests {
    @Test("a client counts at its node only, and its deliveries count once, wherever the actors are")
    func counts() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].textClient()
            let names = nodes.flatMap { $0.names("boards", 10) }
            for (number, name) in names.enumerated() { client.observe("\(number)", name, "observeSteps") }
            #expect(await eventually { client.versions.count == names.count })
            // Metrics throw while other tests of this process block a reactor.
            var found: [MetricList] = []
            _ = await eventually {
                found = []
                for node in nodes { if let list = try? await node.server.metricList() { found.append(list) } }
                return found.count == 2
            }
            try #require(found.count == 2)
            let lists = (found[0], found[1])
            #expect(lists.0.now.connections == 1 && lists.1.now.connections == 0)
            func delivered(_ list: MetricList) -> UInt64 {
                list.counts[.wholesDelivered] + list.counts[.patchesDelivered] + list.counts[.eventsDelivered]
            }
            #expect(delivered(lists.0) == UInt64(names.count))
            #expect(delivered(lists.1) == 0)
            client.abort()
        }
    }

    @Test("the view of a node has the owner of each slot: its own, the known ones, and otherwise the planned one")
    func slots() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let client = try await nodes[0].client()
            _ = try await client.resolve(LargeStateActor.self, id: nodes[1].names("boards")[0]).step()
            let owners = try #require(nodes[0].server.view.node).slotOwners
            var next = 0
            var counts: [String: Int] = [:]
            for part in owners {
                #expect(part.first == next)
                counts[part.owner ?? "", default: 0] += part.last - next + 1
                next = part.last + 1
                if part.owner == "a" { #expect(part.isKnown) }
            }
            #expect(next == ClusterSlot.count)
            #expect(counts == ["a": nodes[0].member.slotCount, "b": nodes[1].member.slotCount])
            // The node has looked up this owner.
            #expect(owners.contains { $0.owner == "b" && $0.isKnown })
        }
    }
}
