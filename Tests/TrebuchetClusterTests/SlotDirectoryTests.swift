import Platform
import TestSupport
import Testing

@testable import TrebuchetCluster

/// Who waits for the owner of a slot.
@Suite(.timeLimit(.minutes(5))) struct SlotDirectoryTests {
    @Test("who waits hears at once that it is this node")
    func own() async throws {
        let world = MemberWorld()
        let node = try world.start()
        let backoff = Backoff(first: .seconds(3_600), limit: .seconds(3_600))
        let directory = SlotDirectory(world.engine, member: node.member, backoff: backoff)
        let slot = ClusterSlot(of: "a")
        async let owner = directory.owner(of: slot, waitingUpTo: .seconds(3_600))
        #expect(await eventually { directory.isWaiting(for: slot) })
        while !node.member.keeps(slot) { try await world.round() }
        directory.didAcquire(slot)
        #expect(try await owner == node.member.node)
        #expect(!directory.isWaiting(for: slot))
    }
}
