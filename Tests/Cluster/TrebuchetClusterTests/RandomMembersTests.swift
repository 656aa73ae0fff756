import Platform
import Testing

@testable import TrebuchetCluster

/// Random sequences of events from seeds: nodes join, die, are suspended and drained, and their access to the engine fails, loses
/// responses and delays messages.
struct RandomMembersTests {
    @Test(
        "no two nodes ever own a slot, and after the faults end all slots have their owners",
        arguments: 0..<6 as Range<UInt64>)
    func randomRounds(_ seed: UInt64) async throws {
        var random = RandomSource(seed: seed)
        let cluster = SimulatedCluster(seed: seed)
        try cluster.start()
        var counts: [String: Int] = [:]
        for _ in 0..<120 {
            if let deed = try change(cluster, &random) { counts[deed, default: 0] += 1 }
            for node in cluster.nodes where Int.random(in: 0..<4, using: &random) == 0 { await node.link.deliver() }
            try await cluster.round(.milliseconds(Int.random(in: 50...600, using: &random)))
        }
        // Enough different events occurred.
        #expect(counts.count >= 4, "\(counts)")
        for node in cluster.nodes { node.link.set(.init()) }
        for node in cluster.nodes { await node.link.deliver() }
        if cluster.nodes.isEmpty { try cluster.start() }
        // The time for which dead nodes count as live, and then the steps.
        let steps = ClusterSlot.count / SimulatedCluster.settings.concurrentHandovers
        #expect(try await cluster.settle(within: 48 + steps), "seed \(seed)")
        for node in cluster.nodes {
            #expect(node.notes.owned == Set(ClusterSlot.all.compactMap { node.member.lease(of: $0) }))
        }
    }

    private func change(_ cluster: SimulatedCluster, _ random: inout RandomSource) throws -> String? {
        let node = cluster.nodes.randomElement(using: &random)
        switch Int.random(in: 0..<40, using: &random) {
        case 0, 1, 2:
            guard cluster.nodes.count < 4 else { return nil }
            // The margin allows for at most this clock rate.
            try cluster.start(rate: UInt64.random(in: 960...1_040, using: &random))
            return "start"
        case 3:
            guard let node, !node.link.isFrozen, cluster.nodes.count > 1 else { return nil }
            cluster.kill(node)
            return "kill"
        case 4, 5:
            node?.stoppedUntil = cluster.clock.milliseconds + UInt64.random(in: 1_000...9_000, using: &random)
            return "stop"
        case 6:
            guard cluster.nodes.count > 1 else { return nil }
            node?.member.beginDraining()
            return "drain"
        case 7...12:
            node?.link.set(
                FaultyEngine.Faults(
                    lost: [0, 20, 500].randomElement(using: &random)!,
                    late: [0, 20, 500].randomElement(using: &random)!,
                    frozen: [0, 1, 3].randomElement(using: &random)!,
                    isAway: Int.random(in: 0..<4, using: &random) == 0))
            return "faults"
        default: return nil
        }
    }
}
