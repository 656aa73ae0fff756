import TestSupport
import Testing
import Trebuchet
import TrebuchetActors
import TrebuchetCluster

/// Nodes that lose what they own while they cannot write it.
@Suite(.timeLimit(.minutes(1))) struct OwnershipTests {
    @Test(
        "an owner of before, which could not write a change, does not write it over what the next owner has acknowledged"
    )
    func ownerOfBefore() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        var settings = Node.settings
        settings.handoverTimeout = .milliseconds(300)
        let first = try Node("a", engine, through: faulty, settings: settings)
        let second = try Node("b", engine, settings: settings)
        try await first.start()
        await ownAll([first])
        let client = try await first.client()
        let tallies = try (0..<24).map { try client.resolve(Tally.self, id: "tallies/\($0)") }
        for tally in tallies { #expect(try await tally.add(1) == 1) }
        faulty.set { $0.failsAppends = true }
        for tally in tallies { await #expect(throws: TrebuchetError.self) { try await tally.add(1) } }

        try await second.start()
        await ownAll([first, second])
        faulty.set { $0.failsAppends = false }
        let moved = (0..<24).filter { second.member.lease(of: ClusterSlot(of: "tallies/\($0)")) != nil }
        #expect(!moved.isEmpty)
        for index in moved { #expect(try await tallies[index].add(100) == 101) }
        try await second.kill()
        for index in moved { #expect(try await tallies[index].add(0) == 101) }
        await first.end()
    }

    @Test("nothing is answered as written that was not, also when the lease ends while a write hangs")
    func hangingWrite() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        var settings = Node.settings
        settings.leaseDuration = .seconds(2)
        settings.leaseMargin = .milliseconds(500)
        let node = try Node("a", engine, through: faulty, settings: settings)
        try await node.start()
        await ownAll([node])
        let client = try await node.client()
        let tally = try client.resolve(Tally.self, id: "tallies/x")
        #expect(try await tally.add(1) == 1)
        // Somebody still has the actor.
        let waiting = Task { try await tally.wait() }
        faulty.set { $0.hangsAppends = true }
        let calls = [10, 100].map { number in Task { try await tally.add(number) } }
        #expect(await eventually { await node.server.counters().callsUnderWay == 3 })
        faulty.set { $0.isAway = true }
        #expect(await eventually { node.member.slotCount == 0 })
        faulty.set { $0.hangsAppends = false }
        var acknowledged = 1
        for call in calls { if let answer = try? await call.value { acknowledged = max(acknowledged, answer) } }
        waiting.cancel()
        faulty.set { $0.isAway = false }
        await ownAll([node])
        #expect(try await tally.add(0) == acknowledged)
        await node.end()
    }
}
