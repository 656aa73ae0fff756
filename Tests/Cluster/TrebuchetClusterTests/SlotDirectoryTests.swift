import Platform
import TestSupport
import Testing

@testable import TrebuchetCluster

/// Lookups of slot owners by one node.
@Suite(.timeLimit(.minutes(5))) struct SlotDirectoryTests {
    @Test("a waiting lookup ends as soon as this node owns the slot")
    func own() async throws {
        let cluster = SimulatedCluster()
        let node = try cluster.start()
        let backoff = Backoff(first: .seconds(3_600), limit: .seconds(3_600))
        let directory = SlotDirectory(cluster.engine, member: node.member, backoff: backoff)
        let slot = ClusterSlot(of: "a")
        async let owner = directory.owner(of: slot, waitingUpTo: .seconds(3_600))
        #expect(await eventually { directory.isWaiting(for: slot) })
        while !node.member.mayStartWork(in: slot) { try await cluster.round() }
        directory.didAcquire(slot)
        #expect(try await owner == node.member.node)
        #expect(!directory.isWaiting(for: slot))
    }

    @Test("an excluded owner is not returned again until another node has owned the slot")
    func excluded() async throws {
        let engine = MemoryEngine()
        let (old, next) = (try ClusterNode(name: "old"), try ClusterNode(name: "next"))
        let slot = ClusterSlot(of: "a")
        let directory = SlotDirectory(engine)
        let lease = try #require(try await acquire(slot, for: old, engine))
        #expect(try await directory.owner(of: slot) == old)
        directory.exclude(old, from: slot)
        #expect(directory.knownOwner(of: slot) == nil)
        #expect(try await directory.owner(of: slot) == nil)
        #expect(try await engine.releaseLease(lease))
        let second = try #require(try await acquire(slot, for: next, engine))
        #expect(try await directory.owner(of: slot) == next)
        // The node owns the slot again, and a lookup after the next one may find it.
        directory.invalidate(slot, ownedBy: next)
        #expect(try await engine.releaseLease(second))
        _ = try #require(try await acquire(slot, for: old, engine))
        #expect(try await directory.owner(of: slot) == old)
    }

    private func acquire(
        _ slot: ClusterSlot, for node: ClusterNode, _ engine: MemoryEngine
    ) async throws -> SlotLease? {
        try await engine.acquire(slot, for: node, duration: .seconds(3_600)).lease
    }
}
